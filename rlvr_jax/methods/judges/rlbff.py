"""RLBFF: a response is paid by the odds that it satisfies a principle, yes against no.

"RLBFF: Binary Flexible Feedback to bridge between Human Feedback & Verifiable Rewards",
https://arxiv.org/abs/2509.21319

    r_i  = ln p(Yes) - ln p(No) of a judge, asked whether the response satisfies the principle
    A_i  = (r_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

The odds are a reward of the task (`number`), or, with a `principle`, those of the policy that the
run begins with, asked behind each response by one token; the policy does not see the principle,
which must be one within a group. They are unbounded, and of a sharp judge nearly binary: `bound` is
ours. The judge is trained by `verdict_loss`, the cross entropy of its token over the whole
vocabulary; `odds_of_yes` is what it says. Constants of RL were not found, and are GRPO's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Array, Float

from rlvr_jax.experience import experience, shape
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.grading.verdicts import asked_rows, checked_answers
from rlvr_jax.objectives import (
    bounded,
    column,
    group_normalized,
    total,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.types.parts import part


@part(at_grading=True, by_row=True)
def reward_odds(
    question: str, answers: Sequence[str] = (" Yes", " No"), of: str = "start", name: str = "odds"
) -> Stage:
    """Adds ln p(yes) - ln p(no) of a policy that is asked about each answer to its grade.

    The number becomes the first reward of the task; it is asked for where answers are graded.

    Args:
      question: behind the response, such as "Is it polite? Answer Yes or No.".
      answers: yes and no, texts of one token each.
      of: whose odds, "start" or "current".
      name: of the reward.
    Writes: info of grades. Metrics: a curve info/<name>.
    Raises:
      ValueError: not two answers, or another policy; as `ask_verdict`.
    """
    answers = checked_answers("reward_odds", answers)
    if len(answers) != 2:
        raise ValueError(f"reward_odds: answers must be yes and no, got {answers}")
    if of not in ("start", "current"):
        raise ValueError(f"reward_odds: of must be 'start' or 'current', got {of!r}")

    def apply(batch, actor, state, turn):
        del turn
        said = actor.score(asked_rows(batch, actor, answers, question), ["verdict_logp"], of)
        odds = np.asarray(odds_of_yes(said["verdict_logp"])).tolist()
        grades = [
            replace(grade, info={**grade.info, name: own})
            for grade, own in zip(batch.grades, odds, strict=True)
        ]
        return replace(batch, grades=grades), state, {}

    return Stage(apply, rewards=(name,))


def odds_of_yes(verdict_logp: Float[Array, "B 2"]) -> Float[Array, "B"]:
    """ln p(yes) - ln p(no) at the token of the verdict: what else might stand there cancels."""
    return verdict_logp[:, 0] - verdict_logp[:, 1]


def rlbff(
    principle: str = "",
    yes: str = " Yes",
    no: str = " No",
    number: int = 0,
    bound: float | None = None,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on a judge's odds.

    Args:
      principle: what the policy that the run begins with is asked behind each response, such as
        " Is it short? Answer Yes or No."; "": the odds are the task's.
      yes, no: what may be said then, texts of one token each of the policy's tokenizer.
      number: of the task's rewards, the odds.
      bound: of the odds on both sides; None: none.
    """
    odds = column(number)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            stages=[
                *([reward_odds(principle, (yes, no))] if principle else []),
                shape(total({"odds": odds if bound is None else bounded(odds, -bound, bound)})),
            ]
        ),
    )


METHOD = Method(
    rlbff,
    "RLBFF: Binary Flexible Feedback to bridge between Human Feedback & Verifiable Rewards",
    "https://arxiv.org/abs/2509.21319",
    changes="reward",
    evidence="reconstruction",
    left_out="the authors' judge (`--judge` brings one) and its data; a judge that reasons first",
    reports=(
        "Qwen3-32B: Arena Hard v2 44.0 to 55.6, WildBench 67.6 to 70.3; its judge that reasons "
        "86.2 on RM-Bench and 81.4 on JudgeBench"
    ),
    traps=(
        "odds under different principles are on no common scale; a sharp judge makes groups "
        "nearly binary; other spellings of Yes hold mass that is not counted"
    ),
)
