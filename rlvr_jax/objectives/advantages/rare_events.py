"""Advantages that amplify rare successes and rare failures, on pairs of prompts."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_at_least
from rlvr_jax.objectives.statistics.group_order import group_index
from rlvr_jax.objectives.statistics.groups import (
    group_deviation,
    group_has_tokens,
    group_mean,
    group_std,
)
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import Function, part

__all__ = [
    "pair_normalized",
    "pass_rate",
    "penalized_outcome",
    "rare_event_advantage",
]


def pass_rate(outcome: Float[Array, "B"], group: Int[Array, "B"]) -> Float[Array, "B"]:
    """Share of right rollouts of the group."""
    return group_mean(outcome, group)


def rare_event_advantage(outcome: Float[Array, "B"], group: Int[Array, "B"]) -> Float[Array, "B"]:
    """(R - p) / sqrt(p (1 - p)): sqrt((1-p)/p) for a success, -sqrt(p/(1-p)) for a failure.

    A success at 1 of G gets sqrt(G - 1). 0 in groups of equal outcomes.
    """
    spread = group_std(outcome, group, ddof=0)
    return (outcome - pass_rate(outcome, group)) / jnp.where(spread > 0, spread, 1)


@part
def penalized_outcome(negative: float) -> Function:
    """+1 for an outcome of 1, -λ for 0, linear between: (1 + λ) · outcome - λ.

    Standardisation within a group undoes it: λ acts on centered advantages, and where statistics
    are taken over more than one group.

    Args:
      negative: λ, at least 0.
    Raises:
      ValueError: a negative λ.
    """
    check_at_least(0, "penalized_outcome", negative=negative)

    def reward(rollouts):
        return (1 + negative) * rollouts.outcome - negative

    return reward


@part
def pair_normalized(epsilon: Positive = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rollouts of two prompts; std with n - 1.

    In the order of their ids the first group with tokens is paired with the second, and so on; a
    last odd one stands alone. A pair of equal rewards gets 0, a group of equal rewards need not.

    Args:
      epsilon: ε, added to the standard deviation, outside its root.
    Reads: reward, group. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    """

    def advantage(rollouts):
        counted = group_has_tokens(rollouts.mask, rollouts.group)
        pair = group_index(rollouts.group, counted) // 2
        centered = group_deviation(rollouts.reward, pair, where=counted)
        return centered / (group_std(rollouts.reward, pair, where=counted) + epsilon)

    return rollout_advantage(advantage)
