"""Rubric rewards: what no verifier checks is scored by several criteria.

"Reinforcement Learning with Rubric Anchors", https://arxiv.org/abs/2508.12790

    R    = Σ w_k s_k / Σ w_k, s_k in [0, 1]
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip / Σ n_i

The weighted share is all that is published as a formula. Four strategies are named there; in the
order in which they act, and with formulas of ours: `saturation` (1 - e^{-s/τ}) / (1 - e^{-1/τ}),
`synergy` (R + c s_a s_b) / (1 + c), `power` R^p, and last a `veto` by one criterion, judged as it
was scored. The criteria are the first rewards of the task, each with a curve of its own; one
without a score leaves the mean, and a response without any leaves its group. A plain sum is hacked
by flattery, which is what the veto is for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import jax.numpy as jnp

from rlvr_jax.experience import experience, shape
from rlvr_jax.objectives import (
    Criterion,
    by_rubric,
    group_normalized,
)
from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.rewards.rubric_reward import criteria_of_kind
from rlvr_jax.objectives.rewards.rubrics import Rows, Scores, vetoed, weighted_share
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, Positive, Range, Unit
from rlvr_jax.types.parts import Function, part


@part
def anchored(
    saturation: Positive | None = None,
    synergy: Annotated[float, Range(-1, open_low=True)] = 0.0,
    pair: tuple[int, int] = (0, 1),
    power: Positive = 1.0,
    veto_below: Unit = 0.5,
) -> Function:
    """The weighted share, saturated, with synergy and a power, and then vetoed.

    Args:
      saturation: τ of `saturated`; None: scores count as they are.
      synergy, pair: of `with_synergy`, above -1; 0: none.
      power: of the reward; above 1 it stretches the top.
      veto_below: what the score of a criterion of kind "veto" must have, as it was given.
    """

    def anchored_share(scores, rubric):
        counted = scores if saturation is None else saturated(scores, saturation)
        reward = weighted_share(counted, [criterion.weight for criterion in rubric])
        if synergy:
            reward = with_synergy(reward, counted, pair, synergy)
        if power != 1:
            reward = reward**power
        vetoes = criteria_of_kind(rubric, "veto")
        return vetoed(reward, scores, vetoes, veto_below) if vetoes else reward

    return anchored_share


def saturated(scores: Scores, scale: float) -> Scores:
    """(1 - e^{-s/τ}) / (1 - e^{-1/τ}): the first points count for more; 0 and 1 stay.

    Args:
      scale: τ, positive.
    """
    check_positive("saturated", scale=scale)
    return (1 - jnp.exp(-scores / scale)) / (1 - math.exp(-1 / scale))


def with_synergy(reward: Rows, scores: Scores, pair: tuple[int, int], coefficient: float) -> Rows:
    """(R + c s_a s_b) / (1 + c): what two criteria are worth together; below 0 if they conflict.

    Args:
      pair: columns a and b.
      coefficient: c, above -1.
    """
    first, second = (scores[:, column] for column in pair)
    return (reward + coefficient * first * second) / (1 + coefficient)


def rubric_rewards(
    weights: Sequence[float] = (2.0, 1.0, 1.0),
    veto: int | None = None,
    veto_below: float = 0.5,
    saturation: float | None = None,
    synergy: float = 0.0,
    pair: tuple[int, int] = (0, 2),
    power: float = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on a weighted share of criteria.

    Args:
      weights: of the criteria, the first rewards of the task (w).
      veto: criterion that takes everything if it fails; None: none.
      veto_below: the score that it must have.
      saturation: scale of the concave map of scores (τ); None: none.
      synergy, pair: weight of the product of two criteria (c), and which; 0: none.
      power: of the reward (p).
    """
    rubric = [
        Criterion(f"{number}", weight, kind="veto" if number == veto else "plain")
        for number, weight in enumerate(weights)
    ]
    combine = anchored(saturation, synergy, pair, power, veto_below)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(stages=[shape(by_rubric(rubric, combine))]),
    )


METHOD = Method(
    rubric_rewards,
    "Reinforcement Learning with Rubric Anchors",
    "https://arxiv.org/abs/2508.12790",
    changes="reward",
    evidence="reconstruction",
    left_out=(
        "the authors' judge (`--judge` brings one); the selection of prompts; "
        "training in two stages"
    ),
    reports="Qwen3-30B-A3B: 5.2 % on open-ended benchmarks, 2.4 % above DeepSeek-V3-671B",
    traps=(
        "plain sums are hacked by flattery; a score that could not be read must be none, not 0, "
        "which may veto; a veto of everything leaves groups equal; the four strategies' formulas "
        "are ours"
    ),
)
