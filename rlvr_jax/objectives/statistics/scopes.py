"""Statistics over sets of tokens that are compared with each other, at each token.

A scope, a function (rollouts) -> `Sets`, decides which tokens are compared:

| scope | a set is |
|---|---|
| `within_batch` | all tokens |
| `within_response` | the tokens of one rollout |
| `within_group` | the tokens of all rollouts of a prompt; long rollouts count for more |

Every statistic takes values, a mask of the same shape, and the sets. The shape is [B, T], or [B, 1]
for numbers of rollouts. The result broadcasts against the values. Values off the mask are not read.
The result is 0 for a set without a token on the mask.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.statistics.order_statistics import MAX, MIN, SUM, Reduce, quantile
from rlvr_jax.types import Mask, Rollouts, Values

__all__ = [
    "Sets",
    "group_sets",
    "min_max",
    "scoped_mean",
    "scoped_quantile",
    "within_batch",
    "within_group",
    "within_response",
]


class Sets(NamedTuple):
    """Sets of tokens with one statistic each, such as the tokens of a group.

    Fields:
      reduce: (reduction, values [B, T]) -> one result per set, in a shape that broadcasts against
        the values. A reduction is a pair of functions: over axes, and over segments.
    """

    reduce: Reduce


Scope = Callable[[Rollouts], Sets]
"""The sets of a batch over which a statistic is computed, such as `within_group`."""


def within_batch(rollouts: Rollouts) -> Sets:
    """All tokens of the batch are one set."""
    del rollouts
    return Sets(lambda reduction, values: reduction[0](values, keepdims=True))


def within_response(rollouts: Rollouts) -> Sets:
    """The tokens of each rollout are a set."""
    del rollouts
    return Sets(lambda reduction, values: reduction[0](values, axis=1, keepdims=True))


def within_group(rollouts: Rollouts) -> Sets:
    """The tokens of all rollouts with one group id are a set."""
    return group_sets(rollouts.group)


def group_sets(group: Int[Array, "B"]) -> Sets:
    """All tokens (or numbers) of the rows with one id are a set."""
    segment = jnp.searchsorted(jnp.sort(group), group)

    def reduce(reduction, values):
        over_axes, over_segments = reduction
        rows = over_axes(values, axis=1)
        return over_segments(rows, segment, num_segments=group.shape[0])[segment][:, None]

    return Sets(reduce)


def scoped_count(mask: Mask, sets: Sets) -> Int[Array, "..."]:
    """Number of tokens of the set."""
    return sets.reduce(SUM, mask.astype(jnp.int32)).astype(jnp.int32)


def scoped_mean(values: Values, mask: Mask, sets: Sets) -> Float[Array, "..."]:
    """Mean over the set; the common value, to the last bit, if all are equal."""
    count = jnp.maximum(scoped_count(mask, sets), 1).astype(values.dtype)
    mean = sets.reduce(SUM, jnp.where(mask, values, 0)) / count
    low, high = scoped_min(values, mask, sets), scoped_max(values, mask, sets)
    return jnp.where(low == high, low, mean)


def scoped_std(values: Values, mask: Mask, sets: Sets, ddof: int = 0) -> Float[Array, "..."]:
    """Standard deviation in two passes, the sum of squares divided by n - ddof.

    0 for sets of `ddof` tokens or fewer and, exactly, for equal values.

    Args:
      values: [B, T], or [B, 1] for numbers of rollouts.
      mask: of the same shape; other values are not read.
      sets: a scope of the rollouts, such as `within_group(rollouts)`.
      ddof: 0: population, 1: sample.
    """
    deviation = jnp.where(mask, values - scoped_mean(values, mask, sets), 0)
    free = jnp.maximum(scoped_count(mask, sets) - ddof, 1).astype(values.dtype)
    return jnp.sqrt(sets.reduce(SUM, deviation**2) / free)


def scoped_min(values: Values, mask: Mask, sets: Sets) -> Float[Array, "..."]:
    """Smallest value of the set."""
    return _or_zero(sets.reduce(MIN, jnp.where(mask, values, jnp.inf)), mask, sets)


def scoped_max(values: Values, mask: Mask, sets: Sets) -> Float[Array, "..."]:
    """Largest value of the set."""
    return _or_zero(sets.reduce(MAX, jnp.where(mask, values, -jnp.inf)), mask, sets)


def scoped_quantile(values: Values, mask: Mask, sets: Sets, fraction: float) -> Float[Array, "..."]:
    """The quantile of the set with linear interpolation, as `masked_quantile` defines it.

    Args:
      values, mask: numbers, and those that count.
      sets: sets of the numbers, from a `Scope`.
      fraction: fraction of the quantile, in [0, 1].
    """
    return quantile(values, mask, fraction, sets.reduce)


def above_quantile(values: Values, mask: Mask, sets: Sets, fraction: float) -> Mask:
    """The tokens strictly above the quantile of their set; none if all its values are equal.

    Args:
      values: [B, T], or [B, 1] for numbers of rollouts.
      mask: of the same shape; other values are not read.
      sets: a scope of the rollouts, such as `within_group(rollouts)`.
      fraction: level of the quantile, in [0, 1].
    """
    return mask & (values > scoped_quantile(values, mask, sets, fraction))


def z_score(values: Values, mask: Mask, sets: Sets, ddof: int = 1, epsilon: float = 1e-6) -> Values:
    """(x - mean) / (std + ε) over the set, 0 off the mask; exactly 0 for equal values.

    Args:
      values: [B, T], or [B, 1] for numbers of rollouts.
      mask: of the same shape; other values are not read.
      sets: a scope of the rollouts, such as `within_group(rollouts)`.
      ddof: 0: population, 1: sample.
      epsilon: ε, in the unit of the values.
    """
    deviation = values - scoped_mean(values, mask, sets)
    scaled = deviation / (scoped_std(values, mask, sets, ddof) + epsilon)
    return jnp.where(mask, scaled, 0)


def min_max(values: Values, mask: Mask, sets: Sets, epsilon: float, equal: float = 0.0) -> Values:
    """(x - min) / (max - min + ε) over the set, 0 off the mask; `equal` where max = min.

    Args:
      values, mask: numbers, and those that count.
      sets: sets of the numbers, from a `Scope`.
      epsilon: added to the denominator (ε).
      equal: result if all numbers of a set are equal.
    """
    low = scoped_min(values, mask, sets)
    spread = scoped_max(values, mask, sets) - low
    scaled = jnp.where(spread > 0, (values - low) / (spread + epsilon), equal)
    return jnp.where(mask, scaled, 0)


def _or_zero(result, mask, sets):
    return jnp.where(scoped_count(mask, sets) > 0, result, 0)
