"""Rubric rewards: several scored criteria reward responses that no verifier can check.

"Reinforcement Learning with Rubric Anchors", https://arxiv.org/abs/2508.12790

    R    = Σ w_k s_k / Σ w_k, s_k in [0, 1]
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip / Σ n_i

The weighted fraction is the only published formula. The paper names four strategies. In the order
of application, with formulas of ours:

    saturation  s ← (1 - e^{-s/τ}) / (1 - e^{-1/τ}), so the first points count for more
    synergy     R ← (R + c s_a s_b) / (1 + c), the joint value of two criteria; c < 0: they conflict
    power       R ← R^p; p > 1 stretches the top
    veto        R ← 0 if the unsaturated score of one criterion is too low

The criteria are the first rewards of the task, each with a separate metric. A criterion without a
score leaves the mean, and a response without any leaves its group.

Left out: the authors' judge (use `--judge`); the selection of prompts; training in two stages.
Reports: Qwen3-30B-A3B: 5.2 % on open-ended benchmarks, 2.4 % above DeepSeek-V3-671B.
Traps: Flattery exploits a plain sum; the veto prevents this. An unreadable score must be none, not
0, which may veto. A veto of all responses leaves groups equal.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import jax.numpy as jnp

from rlvr_jax.experience import experience, shape
from rlvr_jax.experience.rewards.rubrics import (
    by_rubric,
    criteria_of_kind,
    vetoed,
    weighted_fraction,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Criterion, Function, Method, Recipe, Shown, arguments_of, part
from rlvr_jax.types.hyperparameters import NonNegativeInt, Positive, Range, Unit

Synergy = Annotated[float, Range(-1, open_low=True)]


@part
def anchored(
    saturation: Positive | None = None,
    synergy: Synergy = 0.0,
    pair: tuple[int, int] = (0, 1),
    power: Positive = 1.0,
    veto_below: Unit = 0.5,
) -> Function:
    """The weighted fraction with saturation, synergy, power and veto.

    Args:
      saturation: scale of the saturation of the scores (τ); None: no saturation.
      synergy: weight of the product of two scores, above -1 (c).
      pair: columns of these two scores.
      power: exponent of the reward (p).
      veto_below: score below which a criterion of the kind "veto" sets the reward to 0.
    """

    def anchored_fraction(scores, rubric):
        counted = scores
        if saturation is not None:
            counted = (1 - jnp.exp(-scores / saturation)) / (1 - math.exp(-1 / saturation))
        reward = weighted_fraction(counted, [criterion.weight for criterion in rubric])
        if synergy:
            first, second = (counted[:, column] for column in pair)
            reward = (reward + synergy * first * second) / (1 + synergy)
        if power != 1:
            reward = reward**power
        vetoes = criteria_of_kind(rubric, "veto")
        return vetoed(reward, scores, vetoes, veto_below) if vetoes else reward

    return anchored_fraction


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def rubric_rewards(
    weights: Sequence[float] = (2.0, 1.0, 1.0),
    veto: NonNegativeInt | None = None,
    veto_below: Unit = 0.5,
    saturation: Positive | None = None,
    synergy: Synergy = 0.0,
    pair: tuple[int, int] = (0, 2),
    power: Positive = 1.0,
    **clip: Any,
) -> Recipe:
    """Applies GRPO with the token mean to a weighted fraction of criteria.

    Args:
      weights: weights of the criteria, the first rewards of the task (w).
      veto: criterion whose failure sets the reward to 0; None: none.
      veto_below: score that this criterion must have.
      saturation: scale of the concave map of scores (τ); None: none.
      synergy: weight of the product of two criteria (c); 0: none.
      pair: these two criteria.
      power: power of the reward (p).
    """
    rubric = [
        Criterion(f"{number}", weight, kind="veto" if number == veto else "plain")
        for number, weight in enumerate(weights)
    ]
    combine = anchored(saturation, synergy, pair, power, veto_below)
    return Recipe(
        objective=clipped_objective(**clip),
        experience=experience(stages=[shape(by_rubric(rubric, combine))]),
    )


METHOD = Method(
    rubric_rewards,
    changes="reward",
    evidence="reconstruction",
    shown=Shown("brackets", "experience/shaped_fraction", hyperparameters={"weights": "2,1"}),
)
