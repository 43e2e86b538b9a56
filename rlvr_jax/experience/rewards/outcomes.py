"""Rewards made from outcomes: functions (rollouts) -> reward [B].

They read `rollouts.outcome` (or the rewards that contain it) and do not change it: filters and pass
rates still see the verifier's outcome.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.arguments import check_each
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Finite, NonNegative
from rlvr_jax.types.parts import Function, part

__all__ = [
    "Reward",
    "overlong_excess",
    "overlong_penalty",
    "overlong_shaping",
    "plain_outcome",
    "signed_outcome",
    "weighted",
]

Reward = Callable[[Rollouts], Array]
"""A reward: rollouts -> [B]."""
Rate = Float[Array, "..."]


def plain_outcome(rollouts: Rollouts) -> Float[Array, "B"]:
    """The outcome itself, in [0, 1]."""
    return rollouts.outcome


def signed_outcome(rollouts: Rollouts) -> Float[Array, "B"]:
    """2 · outcome - 1: +1 for correct responses, -1 for incorrect ones."""
    return 2 * rollouts.outcome - 1


def overlong_penalty(
    length: Int[Array, "B"], max_length: int, cache_length: int, factor: float = 1.0
) -> Float[Array, "B"]:
    """The penalty of a long response: 0 up to L_max - L_cache, then linear down to -f at L_max.

    P(n) = -f · clip((n - (L_max - L_cache)) / L_cache, 0, 1)

    Args:
      length: n, response tokens with the stop token.
      max_length: L_max, the budget of response tokens.
      cache_length: L_cache, in which the penalty grows; in (0, max_length].
      factor: f, the full penalty, at least 0.
    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476.
    """
    _check_overlong(max_length, cache_length, factor)
    excess = (length - (max_length - cache_length)).astype(float) / cache_length
    return -factor * jnp.clip(excess, 0, 1)


def _check_overlong(max_length: int, cache_length: int, factor: float) -> None:
    check_each(NonNegative, "overlong_penalty", factor=factor)
    if not 0 < cache_length <= max_length:
        raise ValueError(
            f"overlong_penalty: cache_length must be in (0, max_length {max_length}], got"
            f" {cache_length}"
        )


@part
def overlong_excess(max_length: int, cache_length: int, factor: float = 1.0) -> Function:
    """`overlong_penalty` without a reward, as a part of a `total`."""
    _check_overlong(max_length, cache_length, factor)

    def reward(rollouts):
        penalty = overlong_penalty(rollouts.length, max_length, cache_length, factor)
        return penalty.astype(rollouts.outcome.dtype)

    return reward


@part
def overlong_shaping(
    max_length: int, cache_length: int, factor: float = 1.0, base: Reward = plain_outcome
) -> Function:
    """Adds `overlong_penalty` to a reward.

    Args:
      max_length, cache_length: L_max and L_cache, tokens.
      factor: f, the largest penalty.
      base: the reward before the penalty.
    """
    penalty = overlong_excess(max_length, cache_length, factor)

    def reward(rollouts):
        value = base(rollouts)
        return value + penalty(rollouts).astype(value.dtype)

    return reward


@part
def weighted(weights: Sequence[Finite]) -> Function:
    """The weighted sum of a rollout's rewards, Σ_k w_k x_k; a NaN reward counts as 0.

    Args:
      weights: w, one for each column of `component_rewards` [B, K].
    Raises:
      ValueError: no weights; when called, another number of rewards.
    """
    if not len(weights):
        raise ValueError("weighted: weights must be at least one number, got none")

    def reward(rollouts):
        rewards = rollouts.records["component_rewards"]
        if rewards.shape[1] != len(weights):
            raise ValueError(
                f"weighted: weights must be {rewards.shape[1]} numbers, one per reward, got"
                f" {len(weights)}"
            )
        known = jnp.where(jnp.isnan(rewards), 0, rewards)
        return jnp.sum(known * jnp.asarray(weights, known.dtype)[None], axis=1)

    return reward
