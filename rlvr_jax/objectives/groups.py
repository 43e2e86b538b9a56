"""Statistics over the rollouts of one prompt, given back to each rollout.

A group is every row with the same id; ids are any integers and need not stand together. Each row of
the batch counts, also one without tokens: an empty answer was graded like any other. Rows that only
fill the batch must have a group of their own. Groups of equal values are recognised by comparison:
their deviation is exactly 0, whatever the mean rounds to.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = [
    "group_all_equal",
    "group_count",
    "group_mean",
    "group_others_mean",
    "group_spread",
    "group_std",
]


def group_count(group: Int[Array, "B"]) -> Int[Array, "B"]:
    """Number of rollouts in the group of each rollout."""
    return _reduced(jax.ops.segment_sum, jnp.ones_like(group), group)


def group_mean(values: Float[Array, "B"], group: Int[Array, "B"]) -> Float[Array, "B"]:
    """Mean over the group; exactly the common value if all are equal."""
    total = _reduced(jax.ops.segment_sum, values, group)
    mean = total / group_count(group).astype(values.dtype)
    return jnp.where(group_all_equal(values, group), values, mean)


def group_std(
    values: Float[Array, "B"], group: Int[Array, "B"], ddof: int = 1
) -> Float[Array, "B"]:
    """Standard deviation over the group, in two passes; 0 for equal values and groups of one.

    Args:
      values: one number per rollout.
      group: id of the group of each rollout.
      ddof: the sum of squares is divided by n - ddof.
    """
    squares = _reduced(jax.ops.segment_sum, (values - group_mean(values, group)) ** 2, group)
    return jnp.sqrt(squares / jnp.maximum(group_count(group) - ddof, 1).astype(values.dtype))


def group_others_mean(values: Float[Array, "B"], group: Int[Array, "B"]) -> Float[Array, "B"]:
    """Mean over the other rollouts of the group; the own value if there are none or all agree."""
    total = _reduced(jax.ops.segment_sum, values, group)
    others = (total - values) / jnp.maximum(group_count(group) - 1, 1).astype(values.dtype)
    return jnp.where(group_all_equal(values, group), values, others)


def group_spread(values: Float[Array, "B"], group: Int[Array, "B"]) -> Float[Array, "B"]:
    """Largest minus smallest value of the group."""
    largest = _reduced(jax.ops.segment_max, values, group)
    return largest - _reduced(jax.ops.segment_min, values, group)


def group_all_equal(values: Float[Array, "B"], group: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Whether all rollouts of the group have the same value; True for a group of one."""
    return group_spread(values, group) == 0


def _reduced(reduce, values, group):
    """Segment reduction over groups, spread back over the rows."""
    segment = jnp.searchsorted(jnp.sort(group), group)  # any ids, mapped into 0 … B - 1
    return reduce(values, segment, num_segments=group.shape[0])[segment]
