"""Agent-RLVR: failed tasks are retried with guidance; a preference loss separates the outcomes.

"Agent-RLVR: Training Software Engineering Agents via Guidance and Environment Rewards" (only the
abstract and the project page were read)

    a task without a success is tried once more with guidance in the prompt (`Prompt.hints`)
    pair of a task: its first success, its first failure, in both cases without guidance first
    Δ    = Σ_t (logp - reference_logp), of both rows under the prompt without guidance
    loss = mean over pairs of -log σ(β (Δ_success - Δ_failure)), 0 without pairs

"RLVR" means here that tests decide which response is the success. A reconstruction: the choice of
the pair, the prompt of scoring, β and the test for leaks are ours. Guidance that quotes eight
consecutive words of the solution is not used. In the paper a reward model chooses among responses.
Here it is the ratio of trained to initial policy (`python -m rlvr_jax evaluate --scorer
implicit_prm`).

Left out: a teacher that writes guidance during the run; tasks of repositories with tests.
Reports: Qwen-2.5-72B-Instruct on SWE-bench Verified: pass@1 rises from 9.4 to 22.4 %. With a reward
model that chooses, it is 27.8 %.
Traps: A task without a success, or without a failure, has no pair. Without pairs the loss is 0.
Sums over thousands of tokens saturate σ.
"""

from rlvr_jax.experience import PLAIN, ShownPrompt, View, all_incorrect, experience, redraw, turns
from rlvr_jax.experience.views import with_note
from rlvr_jax.objectives import implicit_reward_loss, objective_of_terms
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.derived.hints import leaks
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt, Positive, ReplyTokens


@part(reads={"hints"})
def guidance(words: Count = 8) -> View:
    """Shows all hints of a prompt, in order, unless they reveal its solution (`leaks`).

    `Task.show_hint` adds the hints to the prompt. Without it, a sentence after the prompt's text
    does. The solution is the worked one, or the gold response if there is none. A prompt without
    usable hints is shown unchanged.

    Args:
      words: number of consecutive words of the solution that reveal it.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        text = "\n".join(prompt.hints)
        solution = "".join(prompt.solution) or str(prompt.gold or "")
        if leaks(text, solution, words):
            return ShownPrompt(prompt.text)
        return with_note(text).show(prompt, task)

    return show


def agent_rlvr(
    coefficient: Positive = 0.1,
    attempts: NonNegativeInt = 1,
    leak_words: Count = 8,
    max_turns: NonNegativeInt = 0,
    reply_tokens: ReplyTokens = 512,
) -> Recipe:
    """Applies DPO to a success and a failure of each task; guidance follows if all attempts fail.

    Args:
      coefficient: scale of the log-ratios (β).
      attempts: responses with guidance to a task without a success; 0: the size of a group.
      leak_words: number of consecutive words of the solution that reveal it.
      max_turns: turns of a response with the task's environment; 0: responses are one text.
    """
    draw = turns(None, limit=max_turns, reply_tokens=reply_tokens) if max_turns else None
    return Recipe(
        objective=objective_of_terms([implicit_reward_loss(coefficient, one_pair=True)]),
        experience=experience(
            draw=draw,
            stages=[redraw(all_incorrect, guidance(leak_words), "append", attempts, trained=PLAIN)],
        ),
    )


METHOD = Method(
    agent_rlvr,
    changes="surrogate, guidance, sampling",
    evidence="reconstruction",
    shown=Shown(
        "noted_calculations",
        "experience/redrawn_solved",
        without="verltool",
        hyperparameters={"max_turns": 3},
        settings={"samples_per_prompt": 2},
    ),
)
