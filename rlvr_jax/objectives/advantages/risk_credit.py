"""How the value of a sum of rewards is shared out to the rollouts that it is the sum of.

Functions (value [B], reward [B], group [B], unit [B], epsilon) -> [B]: the value of the sum stands
at each of its rollouts, which have one `unit` and different groups.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.statistics.groups import group_count, group_deviation, group_std, group_sum

__all__ = [
    "Credit",
    "outcome_credit",
    "relative_credit",
    "spread_credit",
    "uniform_credit",
]

Rows = Float[Array, "B"]
Ids = Int[Array, "B"]
Credit = Callable[[Rows, Rows, Ids, Ids, float], Rows]


def uniform_credit(value: Rows, reward: Rows, group: Ids, unit: Ids, epsilon: float) -> Rows:
    """The value itself."""
    del reward, group, unit, epsilon
    return value


def spread_credit(value: Rows, reward: Rows, group: Ids, unit: Ids, epsilon: float) -> Rows:
    """value / (std of the prompt's rewards + ε), a deviation of 1e-3 or less replaced by 1."""
    del unit
    std = group_std(reward, group)
    return value / (jnp.where(std <= 1e-3, 1, std) + epsilon)


def outcome_credit(value: Rows, reward: Rows, group: Ids, unit: Ids, epsilon: float) -> Rows:
    """Half the value for rewards above 0, one and a half for the others."""
    del group, unit, epsilon
    return jnp.where(reward > 0, 0.5, 1.5).astype(value.dtype) * value


def relative_credit(value: Rows, reward: Rows, group: Ids, unit: Ids, epsilon: float) -> Rows:
    """The share of R - mean of the prompt in its sum over the unit; even shares if that is ≤ ε."""
    lead = group_deviation(reward, group)
    total = group_sum(lead, unit)
    even = 1 / group_count(unit).astype(value.dtype)
    tiny = jnp.abs(total) <= epsilon
    return value * jnp.where(tiny, even, lead / jnp.where(tiny, 1, total))
