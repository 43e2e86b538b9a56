"""Statistics over the rollouts of one prompt, at each rollout.

A group is all rows with one id; ids are any integers in any order. Every row of a group counts in
statistics of its rewards, also a row without tokens: an empty response is graded like any other.
Statistics of tokens run over the rows that `has_tokens` marks. Statistics of the batch's rewards
run over `group_has_tokens`: groups without tokens fill the batch or are ungraded.

Means are computed from distances to the smallest value of the group, so the rounding error is small
relative to the spread. Deviations of equal values are exactly 0. An advantage that is divided by a
small deviation does not depend on the order in which devices add.

Arguments of several functions:

    where: bool [B], the rows that count; every row of a group gets the result. A statistic of no
      row is 0.
    weights: [B], ≥ 0, weights of the rows in a mean; rows of weight 0 do not count.
    virtual: (value, number) of entries that are added to the rows of every group.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.types import Function, Ids, Rollouts, RowMask, Rows, part
from rlvr_jax.types.hyperparameters import Finite, NonNegativeInt

Where = Bool[Array, "B"] | None
Virtual = tuple[float, int] | None


def pair_ids(one: Int[Array, "B"], other: Int[Array, "B"]) -> Int[Array, "B"]:
    """One id for each pair of two ids, such as group and cell."""
    places = [jnp.searchsorted(jnp.sort(ids), ids) for ids in (one, other)]
    return places[0] * one.shape[0] + places[1]


def has_tokens(mask: Bool[Array, "B T"]) -> Bool[Array, "B"]:
    """Rows with a token on the mask."""
    return jnp.any(mask, axis=1)


def group_has_tokens(mask: Bool[Array, "B T"], group: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Rows of the groups in which some row has a token on the mask."""
    return group_count(group, has_tokens(mask)) > 0


def group_count(group: Int[Array, "B"], where: Where = None) -> Int[Array, "B"]:
    """Number of rollouts in the group of each rollout."""
    return group_sum(jnp.ones(group.shape, jnp.int32), group, where)


def group_sum(values: Rows | Ids, group: Ids, where: Where = None) -> Rows | Ids:
    """Sum over the group."""
    counted = values if where is None else jnp.where(where, values, 0)
    return _reduced(jax.ops.segment_sum, counted, group)


def group_max(values: Rows, group: Ids, where: Where = None) -> Rows:
    """Largest value of the group."""
    return jnp.where(group_count(group, where) > 0, _extremes(values, group, where)[1], 0)


def group_mean(
    values: Float[Array, "B"],
    group: Int[Array, "B"],
    where: Where = None,
    weights: Float[Array, "B"] | None = None,
    virtual: Virtual = None,
) -> Float[Array, "B"]:
    """Mean over the group; exactly the common value if all are equal.

    Args:
      values, group: value and group of each row.
      where: rows that count; None: all.
      weights: weight of each row; None: equal weights.
      virtual: value and number of virtual entries of each group; None: none.
    """
    smallest, distance = _mean_distance(values, group, where, weights, virtual)
    return smallest + distance


def group_deviation(
    values: Float[Array, "B"],
    group: Int[Array, "B"],
    where: Where = None,
    weights: Float[Array, "B"] | None = None,
    virtual: Virtual = None,
) -> Float[Array, "B"]:
    """Value minus `group_mean`, with little rounding error; exactly 0 if all are equal.

    Args:
      values, group, where, weights, virtual: as for `group_mean`.
    """
    smallest, distance = _mean_distance(values, group, where, weights, virtual)
    return (values - smallest) - distance


def group_std(
    values: Rows, group: Ids, ddof: int = 1, where: Where = None, virtual: Virtual = None
) -> Rows:
    """Standard deviation with the divisor n - `ddof`; 0 for equal values and for one row.

    Args:
      values, group, where, virtual: as for `group_mean`.
      ddof: subtracted from the number of rows in the divisor.
    """
    smallest, distance = _mean_distance(values, group, where, None, virtual)
    deviation = (values - smallest) - distance
    squares, count = group_sum(deviation**2, group, where), group_count(group, where)
    if virtual is not None:
        value, number = virtual
        squares = squares + number * ((value - smallest) - distance) ** 2
        count = count + number
    return jnp.sqrt(squares / jnp.maximum(count - ddof, 1).astype(values.dtype))


def group_z_score(values: Rows, group: Ids, epsilon: float, where: Where = None) -> Rows:
    """(x - mean) / (std + ε) over the group, std with n - 1.

    Args:
      values, group, where: as for `group_mean`.
      epsilon: added to the standard deviation (ε).
    """
    return group_deviation(values, group, where) / (group_std(values, group, where=where) + epsilon)


@part
def mean_with_virtual(value: Finite, number: NonNegativeInt) -> Function:
    """Makes a `group_mean` with further, virtual entries: (values, group, where) -> [B]."""
    return lambda values, group, where=None: group_mean(
        values, group, where, virtual=(value, number)
    )


@part
def std_with_virtual(value: Finite, number: NonNegativeInt) -> Function:
    """`group_std` with virtual entries, as `mean_with_virtual`."""
    return lambda values, group, where=None: group_std(
        values, group, where=where, virtual=(value, number)
    )


def group_others_mean(values: Rows, group: Ids, where: Where = None) -> Rows:
    """Mean over the other rollouts of the group; the own value if there are none or all agree."""
    own = 1 if where is None else where.astype(values.dtype)
    number = group_count(group, where).astype(values.dtype) - own
    others = (group_sum(values, group, where) - own * values) / jnp.maximum(number, 1)
    return jnp.where(group_all_equal(values, group, where), values, others)


def group_spread(values: Rows, group: Ids, where: Where = None) -> Rows:
    """Difference of the largest and the smallest value of the group."""
    smallest, largest = _extremes(values, group, where)
    return jnp.where(group_count(group, where) > 0, largest - smallest, 0)


def group_all_equal(values: Rows, group: Ids, where: Where = None) -> RowMask:
    """Whether all rollouts of the group have the same value; True for a group of one."""
    return group_spread(values, group, where) == 0


def batch_mean(values: Rows, group: Ids, where: Where = None) -> Rows:
    """Mean over the rollouts of the batch; exactly the common value if all are equal."""
    return group_mean(values, jnp.zeros_like(group), where)


def batch_std(values: Rows, group: Ids, where: Where = None) -> Rows:
    """Standard deviation over the rollouts of the batch; the squares are divided by n - 1."""
    return group_std(values, jnp.zeros_like(group), where=where)


def _extremes(values, group, where=None):
    """Smallest and largest value of the group; inf and -inf for no value."""
    counted = jnp.ones_like(group, dtype=bool) if where is None else where
    smallest = _reduced(jax.ops.segment_min, jnp.where(counted, values, jnp.inf), group)
    return smallest, _reduced(jax.ops.segment_max, jnp.where(counted, values, -jnp.inf), group)


def _mean_distance(values, group, where, weights, virtual):
    """The group's smallest value, without gradient, and the mean distance from it; 0 for none."""
    if weights is None:
        weights = jnp.ones_like(values)
    where = (weights != 0) if where is None else where & (weights != 0)
    mass = group_sum(weights, group, where)
    smallest = jax.lax.stop_gradient(_extremes(values, group, where)[0])
    if virtual is not None and virtual[1]:
        value, number = virtual
        smallest, mass = jnp.minimum(smallest, value), mass + number
    smallest = jnp.where(mass > 0, smallest, 0)
    total = group_sum(weights * (values - smallest), group, where)
    if virtual is not None and virtual[1]:
        total = total + number * (value - smallest)
    return smallest, total / jnp.where(mass > 0, mass, 1)


def _reduced(reduce, values, group):
    """Reduction over the rows of each group, repeated on each of its rows."""
    segment = jnp.searchsorted(jnp.sort(group), group)  # any ids, mapped into 0 … B - 1
    return reduce(values, segment, num_segments=group.shape[0])[segment]


def has_correct_sibling(rollouts: Rollouts, success: float = 0.5) -> Bool[Array, "B"]:
    """Rows in whose group another row has an outcome of at least `success`."""
    correct = (rollouts.outcome >= success).astype(jnp.int32)
    return group_sum(correct, rollouts.group) > correct


def finished_rows(rollouts: Rollouts) -> Bool[Array, "B"]:
    """Rows with tokens that were not truncated."""
    return ~rollouts.truncated & jnp.any(rollouts.mask, axis=1)
