"""Agent-RLVR: failed tasks are tried again with guidance, and successes are preferred to failures.

"Agent-RLVR: Training Software Engineering Agents via Guidance and Environment Rewards", of which
the abstract and the page were read.

    a task without a success is tried once more with guidance in the prompt (`Prompt.hints`)
    pair of a task: its first success, its first failure, in both cases without guidance first
    Δ    = Σ_t (logp - reference_logp), of both rows under the prompt without guidance
    loss = mean over pairs of -log σ(β (Δ_success - Δ_failure)), 0 without pairs

"RLVR" means here that tests choose the sides. The choice of the pair, the prompt under which it is
scored, β and the test of leaks are ours: guidance with eight consecutive words of the solution is
not used. The paper's reward model, which chooses among responses, is the ratio of the trained to
the initial policy (`experiments.evaluate --scorer implicit_prm`). Sums over thousands of tokens
saturate σ.

Left out: a teacher that writes guidance during the run; tasks of repositories with tests
Reports: Qwen-2.5-72B-Instruct on SWE-bench Verified: pass@1 9.4 to 22.4 %, 27.8 % where a reward
model chooses
Traps: a task with no success, or with no failure, gives no pair, and without pairs the loss is 0;
sums over thousands of tokens saturate σ; guidance that quotes the solution is not used
"""

from rlvr_jax.experience import PLAIN, Shown, View, all_incorrect, experience, redraw, turns
from rlvr_jax.experience.views import with_note
from rlvr_jax.objectives import implicit_reward_loss, objective_of_terms
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.derived.hints import leaks
from rlvr_jax.types import Method, Recipe, part
from rlvr_jax.types.hyperparameters import Count, NonNegativeInt, Positive, ReplyTokens


@part(reads={"hints"})
def guidance(words: Count = 8) -> View:
    """Shows all hints of a prompt, in order, unless they reveal its solution (`leaks`).

    The hints are shown by `Task.show_hint`, else in a sentence after the prompt's text. The
    solution is the worked one, or the gold response where there is none. A prompt without usable
    hints is shown unchanged.

    Args:
      words: consecutive ones of the solution that hints may not have.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = "\n".join(prompt.hints)
        solution = "".join(prompt.solution) or str(prompt.gold or "")
        if leaks(text, solution, words):
            return Shown(prompt.text)
        return with_note(text).show(prompt, task)

    return show


def agent_rlvr(
    coefficient: Positive = 0.1,
    attempts: NonNegativeInt = 1,
    leak_words: Count = 8,
    max_turns: NonNegativeInt = 0,
    reply_tokens: ReplyTokens = 512,
) -> Recipe:
    """DPO on a success and a failure of each task, guided where nothing succeeded.

    Args:
      coefficient: scale of the log-ratios (β).
      attempts: with guidance, of a task without a success; 0: the size of a group.
      leak_words: consecutive words of the solution that guidance may not have.
      max_turns: of a response in turns with the task's environment; 0: responses are one text.
    """
    draw = turns(None, limit=max_turns, reply_tokens=reply_tokens) if max_turns else None
    return Recipe(
        objective=objective_of_terms([implicit_reward_loss(coefficient, one_pair=True)]),
        experience=experience(
            draw=draw,
            stages=[redraw(all_incorrect, guidance(leak_words), "append", attempts, trained=PLAIN)],
        ),
    )


METHOD = Method(agent_rlvr, changes="surrogate, guidance, sampling", evidence="reconstruction")
