"""NuRL: a prompt that nobody answers is asked again with an abstract hint that the policy once
wrote.

"NuRL: Nudging the Boundaries of LLM Reasoning", of which the abstract was read.

    1. GRPO until it has converged; then prompts that are always solved leave the set
    2. a group without a right response is drawn anew: N - 1 responses with the hint, one without
    3. GRPO over the group; each row is learned from under the prompt it was drawn from, ratio 1

The row without a hint lowers the baseline, so that hinted successes gain. Hints are made once, from
the gold answer by way of an explanation, and are texts of the prompts (`Prompt.hints`); one that
holds the answer is not shown. Abstract knowledge works best, a partial solution worse, the answer
worst. Step of the switch, test for leaks and the rule for what is solved are ours; GRPO is
PPO's clip on the token mean. A group that stays all wrong teaches nothing.
"""

from __future__ import annotations

from rlvr_jax.experience import all_wrong, experience, redraw
from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.experience.curricula.shrinking import picks_from_pool
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.views import NOTE
from rlvr_jax.objectives import group_normalized
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.hints import gives_away
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon
from rlvr_jax.types.parts import part


@part
def unsolved_pool(after: Count) -> Curriculum:
    """Picks from all prompts at first, and after some steps from those that are not yet solved.

    Solved is a prompt of whose last visit all answers were right; it does not come back. Where all
    are solved, all stay. A step picks as `shrinking_pool` does.

    Args:
      after: steps, at least 1.
    Metrics: pool_prompts, pool_rate (mean pass rate of its last visits).
    """

    def cut(steps, pool, history):
        if steps != after:
            return pool
        left = pool & ~(history.latest >= 1)
        return left if left.any() else pool

    return picks_from_pool(cut)


@part
def written_hint() -> View:
    """Shows the first hint of a prompt (`Prompt.hints`), if it does not give the answer away.

    As the task says (`Task.show_hint`), else in a sentence behind the prompt's text. What says the
    answer is `rlvr_jax.tasks.hints.answer_texts`.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = prompt.hints[0]
        if gives_away(text, prompt):
            return Shown(prompt.text)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, text))
        return Shown(f"{prompt.text}{NOTE}{text}")

    return View(show, frozenset({"hints"}))


def nurl(
    first_stage: int = 100,
    plain_rows: int = 1,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO, and after a first stage with hints for groups that are all wrong.

    Args:
      first_stage: steps without hints, at least 1.
      plain_rows: of a group that is drawn anew, without the hint.
    """
    hinted = redraw(all_wrong, written_hint(), plain=plain_rows, after=first_stage)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(unsolved_pool(first_stage), stages=[hinted]),
    )


METHOD = Method(
    nurl,
    "NuRL: Nudging the Boundaries of LLM Reasoning",
    "",
    changes="curriculum, sampling, guidance",
    evidence="reconstruction",
    left_out="writing the hints, by the policy before training",
    reports=(
        "six benchmarks, three models, above GRPO; Llama 3B 35.87 to 37.49 on average; pass@1024 "
        "on GPQA 63.6 to 69.7, where GRPO's stays"
    ),
    traps=(
        "hints before GRPO has converged gain less, and ones near the answer are worst; a hint "
        "that holds the answer is not shown; the plain row's failure lifts the hinted ones"
    ),
)
