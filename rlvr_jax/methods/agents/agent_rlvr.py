"""Agent-RLVR: what fails is tried again with guidance, and successes are preferred to failures.

"Agent-RLVR: Training Software Engineering Agents via Guidance and Environment Rewards", of which
the abstract and the page were read.

    a task without a success is tried once more with guidance in the prompt (`Prompt.hints`)
    pair of a task: its first success, its first failure, in both cases without guidance first
    Δ    = Σ_t (logp - reference_logp), of both rows under the prompt without guidance
    loss = mean over pairs of -log σ(β (Δ_success - Δ_failure)), 0 without pairs

"RLVR" means here that tests choose the sides. The choice of the pair, the prompt under which it is
scored, β and the test of leaks are ours: guidance in which eight consecutive words of the solution
stand is not used. The reward model that chooses among answers later is the trained policy beside
the one it began as (`experiments.evaluate --scorer implicit_prm`). Sums over thousands of tokens
saturate σ.
"""

from __future__ import annotations

from rlvr_jax.experience import PLAIN, all_wrong, experience, redraw, turns
from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.experience.views import with_note
from rlvr_jax.objectives import (
    implicit_reward_loss,
)
from rlvr_jax.objectives.compositions import objective_of_terms
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.hints import leaks
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part


@part
def guidance(words: Count = 8) -> View:
    """Shows all hints of a prompt, in order, unless they give its solution away (`leaks`).

    As the task says (`Task.show_hint`), else in a sentence behind the prompt's text. The solution
    is the worked one, or the gold response where there is none. A prompt whose hints are not used
    is shown as it is.

    Args:
      words: of the solution, one after the other, that may not stand in the hints.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = "\n".join(prompt.hints)
        solution = "".join(prompt.solution) or str(prompt.gold or "")
        if leaks(text, solution, words):
            return Shown(prompt.text)
        return with_note(text).show(prompt, task)

    return View(show, frozenset({"hints"}))


def agent_rlvr(
    coefficient: float = 0.1,
    attempts: int = 1,
    leak_words: int = 8,
    max_turns: int = 0,
    reply_tokens: int = 512,
) -> Recipe:
    """DPO on a success and a failure of each task, guided where nothing succeeded.

    Args:
      coefficient: scale of the log-ratios (β).
      attempts: with guidance, of a task without a success.
      leak_words: consecutive words of the solution that guidance may not have.
      max_turns: of an answer in turns with the task's environment; 0: answers are one text.
      reply_tokens: of the environment's reply, at most.
    """
    draw = turns(None, limit=max_turns, reply_tokens=reply_tokens) if max_turns else None
    return Recipe(
        objective=objective_of_terms([implicit_reward_loss(coefficient, one_pair=True)]),
        experience=experience(
            draw=draw,
            stages=[redraw(all_wrong, guidance(leak_words), "append", attempts, trained=PLAIN)],
        ),
    )


METHOD = Method(
    agent_rlvr,
    "Agent-RLVR: Training Software Engineering Agents via Guidance and Environment Rewards",
    "",
    changes="surrogate, guidance, sampling",
    evidence="reconstruction",
    left_out="a teacher that writes guidance during the run; tasks of repositories with tests",
    reports=(
        "Qwen-2.5-72B-Instruct on SWE-bench Verified: pass@1 9.4 to 22.4 %, 27.8 % where a reward "
        "model chooses"
    ),
    traps=(
        "a task with no success, or with no failure, gives no pair, and without pairs the loss is "
        "0; sums over thousands of tokens saturate σ; guidance that quotes the solution is not "
        "used"
    ),
)
