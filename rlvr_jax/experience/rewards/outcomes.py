"""Rewards made from outcomes: functions (rollouts) -> reward [B].

They read `rollouts.outcome` (or the rewards of which it is one) and leave it alone: filters and
pass rates keep seeing what the verifier said.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Finite, NonNegative
from rlvr_jax.types.parts import Function, check_each, part

__all__ = [
    "Reward",
    "check_overlong",
    "overlong_excess",
    "overlong_penalty",
    "overlong_shaping",
    "plain_outcome",
    "signed_outcome",
    "weighted",
]

Reward = Callable[[Rollouts], Array]


def plain_outcome(rollouts: Rollouts) -> Float[Array, "B"]:
    """The outcome itself, in [0, 1]."""
    return rollouts.outcome


def signed_outcome(rollouts: Rollouts) -> Float[Array, "B"]:
    """2 · outcome - 1: right is +1, wrong is -1."""
    return 2 * rollouts.outcome - 1


def overlong_penalty(
    length: Int[Array, "B"], max_length: int, cache_length: int, factor: float = 1.0
) -> Float[Array, "B"]:
    """What a long response loses: 0 up to L_max - L_cache, then linearly down to -f at L_max.

    P(n) = -f · clip((n - (L_max - L_cache)) / L_cache, 0, 1)

    Args:
      length: n, response tokens with the stop token.
      max_length: L_max, the budget of response tokens.
      cache_length: L_cache, in which the penalty grows; in (0, max_length].
      factor: f, the full penalty, at least 0.
    Raises:
      ValueError: cache_length outside (0, max_length], or a negative factor.
    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476.
    """
    check_overlong("overlong_penalty", max_length, cache_length, factor)
    excess = (length - (max_length - cache_length)).astype(float) / cache_length
    return -factor * jnp.clip(excess, 0, 1)


@part
def overlong_shaping(
    max_length: int, cache_length: int, factor: float = 1.0, base: Reward = plain_outcome
) -> Function:
    """Adds the soft overlong penalty to a reward.

    Args:
      max_length, cache_length, factor: as in `overlong_penalty`.
      base: the reward before the penalty.
    Raises:
      ValueError: cache_length outside (0, max_length], or a negative factor.
    """
    check_overlong("overlong_shaping", max_length, cache_length, factor)

    def reward(rollouts):
        value = base(rollouts)
        penalty = overlong_penalty(rollouts.length, max_length, cache_length, factor)
        return value + penalty.astype(value.dtype)

    return reward


@part
def weighted(weights: Sequence[Finite]) -> Function:
    """The weighted sum of a rollout's rewards, Σ_k w_k x_k, where one that does not apply is 0.

    Args:
      weights: w, one for each column of `component_rewards`.
    Reads: component_rewards [B, K], NaN where one does not apply.
    Raises:
      ValueError: no weights, or one that is not finite; when called, another number of rewards.
    """
    if not len(weights):
        raise ValueError("weighted: weights must be at least one number, got none")

    def reward(rollouts):
        rewards = rollouts.component_rewards
        if rewards.shape[1] != len(weights):
            raise ValueError(
                f"weighted: weights must be {rewards.shape[1]} numbers, one per reward, got"
                f" {len(weights)}"
            )
        known = jnp.where(jnp.isnan(rewards), 0, rewards)
        return jnp.sum(known * jnp.asarray(weights, known.dtype)[None], axis=1)

    return reward


def check_overlong(function: str, max_length: int, cache_length: int, factor: float) -> None:
    """Refuses lengths and a factor that make no overlong penalty."""
    check_each(NonNegative, function, factor=factor)
    if not 0 < cache_length <= max_length:
        raise ValueError(
            f"{function}: cache_length must be in (0, max_length {max_length}], got {cache_length}"
        )


Rows = Float[Array, "B"]


@part
def overlong_excess(max_length: int, cache_length: int, factor: float = 1.0) -> Function:
    """`overlong_penalty` alone, to be a part of a `total`.

    Args:
      max_length, cache_length, factor: as there.
    Raises:
      ValueError: cache_length outside (0, max_length], or a negative factor.
    """
    check_overlong("overlong_excess", max_length, cache_length, factor)

    def reward(rollouts):
        penalty = overlong_penalty(rollouts.length, max_length, cache_length, factor)
        return penalty.astype(rollouts.outcome.dtype)

    return reward


Rate = Float[Array, "..."]
