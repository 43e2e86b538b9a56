"""RLBFF: rewards a response by the odds, yes against no, that it satisfies a principle.

"RLBFF: Binary Flexible Feedback to bridge between Human Feedback & Verifiable Rewards",
https://arxiv.org/abs/2509.21319

    r_i  = ln p(Yes) - ln p(No) of a judge: does the response satisfy the principle?
    A_i  = (r_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

The odds are a reward of the task (`number`). With a `principle`, they are those of the initial
policy, which answers a question after each response by one token. The trained policy does not read
the principle, which must be one within a group. Odds are unbounded, and nearly binary for a
confident judge; `bound` is ours. The judge is trained by `verdict_loss` (RL^V), the cross entropy
of its token over the whole vocabulary. A reconstruction: the constants of RL are GRPO's. The base
model of `discussed_sums` answers the principle " Are the steps shown? Answer Yes or No.".

Left out: the authors' judge (use `--judge`) and its data, which do not ship; a judge that reasons
first.
Reports: Qwen3-32B: Arena Hard v2 44.0 to 55.6, WildBench 67.6 to 70.3. The judge that reasons: 86.2
% on RM-Bench and 81.4 % on JudgeBench.
Traps: Odds under different principles have no common scale. Other spellings of Yes have probability
that is not counted.
"""

from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience import Stage, bounded, column, experience, part, shape, total
from rlvr_jax.experience.grades import with_info
from rlvr_jax.experience.stages.grading.verdicts import asked_rows, checked_answers
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegative, NonNegativeInt

ODDS = "odds"  # name of the reward
STEPS_SHOWN = " Are the steps shown? Answer Yes or No."


@part(at_grading=True, by_row=True)
def reward_odds(question: str, answers: Sequence[str] = (" Yes", " No")) -> Stage:
    """Adds ln p(yes) - ln p(no) of the initial policy as the first reward of the task.

    Metrics: info/odds (mean of the odds), odds_deviation (standard deviation of the odds of a
      group, mean over the groups).
    """
    answers = checked_answers("reward_odds", answers)
    if len(answers) != 2:
        raise ValueError(f"reward_odds: answers must be yes and no, got {answers}")

    def apply(batch, actor, state, turn):
        asked = asked_rows(batch, actor, answers, question)
        # What else could follow the response cancels in the difference.
        logp = np.asarray(actor.score(asked, ["verdict_logp"], "start")["verdict_logp"])
        odds = logp[:, 0] - logp[:, 1]
        metrics = {"odds_deviation": float(np.mean([odds[rows].std() for rows in batch.groups]))}
        return with_info(batch, [{ODDS: own} for own in odds.tolist()]), state, metrics

    return Stage(apply, rewards=(ODDS,))


def rlbff(
    principle: str = "",
    yes: str = " Yes",
    no: str = " No",
    number: NonNegativeInt = 0,
    bound: NonNegative | None = None,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies GRPO with the token mean to a judge's odds.

    Args:
      principle: question to the initial policy after each response, such as
        " Is it short? Answer Yes or No."; "": the odds are the task's.
      yes, no: the two answers, texts of one token each of the policy's tokenizer.
      number: index of the task's reward with the odds.
      bound: bound of the odds on both sides; None: none.
    """
    odds = column(number)
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(
            stages=[
                *([reward_odds(principle, (yes, no))] if principle else []),
                shape(total({"odds": odds if bound is None else bounded(odds, -bound, bound)})),
            ]
        ),
    )


METHOD = Method(
    rlbff,
    changes="reward",
    evidence="reconstruction",
    shown=Shown(
        "discussed_sums", "experience/odds_deviation", hyperparameters={"principle": STEPS_SHOWN}
    ),
)
