"""NuRL: a prompt without a correct response is sampled again with an abstract hint.

"NuRL: Nudging the Boundaries of LLM Reasoning" (only the abstract was read)

    1. GRPO until it has converged; then prompts that are always solved leave the set
    2. a group without a correct response is sampled again: N - 1 responses with the hint, one plain
    3. GRPO over the group; each row is trained under the prompt it was sampled from, ratio 1

The plain row lowers the baseline, which raises the advantage of hinted successes. In the paper, the
policy writes the hints once, from an explanation of the gold answer. They are texts of the prompts
(`Prompt.hints`). A reconstruction: the step of the switch (`first_stage`), the test for leaks and
the rule for solved prompts are ours. GRPO is PPO's clip on the token mean.

Left out: the writing of hints by the policy before training.
Reports: above GRPO on six benchmarks with three models. Llama 3B: 35.87 to 37.49 % on average.
Pass@1024 on GPQA: 63.6 to 69.7 %; GRPO does not change it.
Traps: Hints before GRPO has converged gain less. Abstract knowledge is best, a partial solution
worse, the answer worst; a hint that contains the answer is not shown. A group without a correct
response has no gradient.
"""

from typing import Any

from rlvr_jax.experience import Curriculum, Shown, View, all_incorrect, experience, part, redraw
from rlvr_jax.experience.curricula.shrinking import picks_from_pool
from rlvr_jax.experience.views import NOTE
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.derived.hints import gives_away
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt


@part
def unsolved_pool(after: Count) -> Curriculum:
    """Picks from all prompts at first, and after some steps from those that are not yet solved.

    A prompt is solved if all responses of its last group were correct; it does not return. If all
    are solved, all stay. A step takes the least sampled prompts of the pool.

    Args:
      after: steps before the change.
    Metrics: pool_prompts (prompts of the pool), left_prompts (prompts that left it), pool_rate
      (mean pass rate when last sampled).
    """

    def cut(steps, pool, history):
        if steps != after:
            return pool
        left = pool & ~(history.latest >= 1)
        return left if left.any() else pool

    return picks_from_pool(cut)


@part(reads={"hints"})
def written_hint() -> View:
    """Shows the first hint of a prompt (`Prompt.hints`) unless it contains the answer.

    The form is that of `Task.show_hint`, else a sentence after the prompt's text.
    `rlvr_jax.tasks.derived.hints.answer_texts` lists the texts that count as the answer.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = prompt.hints[0]
        if gives_away(text, prompt):
            return Shown(prompt.text)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, text))
        return Shown(f"{prompt.text}{NOTE}{text}")

    return View(show)


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def nurl(first_stage: Count = 100, plain_rows: NonNegativeInt = 1, **clip: Any) -> Recipe:
    """Applies GRPO, after a first stage with hints for groups without a correct response.

    Args:
      first_stage: steps without hints.
      plain_rows: rows without the hint in a group that is sampled again.
    """
    hinted = redraw(all_incorrect, written_hint(), plain=plain_rows, after=first_stage)
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(unsolved_pool(first_stage), stages=[hinted]),
    )


METHOD = Method(nurl, changes="curriculum, sampling, guidance", evidence="reconstruction")
