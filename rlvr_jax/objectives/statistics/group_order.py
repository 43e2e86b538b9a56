"""Order within a group: ranks, quantiles, and groups numbered in the order of their ids.

Ties are broken by `rollout_id`, so nothing depends on the order of the rows.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from rlvr_jax.objectives.statistics.scopes import group_sets, scoped_quantile


def group_index(group: Int[Array, "B"], where: Bool[Array, "B"] | None = None) -> Int[Array, "B"]:
    """Numbers the groups 0, 1, … in the order of their ids.

    Args:
      group: id of the group of each rollout.
      where: the rows that count, whole groups; the others have the number behind the last of these.
    """
    if where is not None:
        group = jnp.where(where, group, jnp.iinfo(group.dtype).max)
    ordered = jnp.sort(group)
    starts = jnp.concatenate([jnp.zeros(1, bool), ordered[1:] != ordered[:-1]])
    index = jnp.cumsum(starts, dtype=jnp.int32)
    return index[jnp.searchsorted(ordered, group)]


def group_rank(
    values: Shaped[Array, "B"], group: Int[Array, "B"], rollout_id: Int[Array, "B"]
) -> Int[Array, "B"]:
    """Place of each rollout in its group by ascending value, from 0; ties by `rollout_id`."""
    order = jnp.lexsort((rollout_id, values, group))
    place = jnp.zeros(order.shape, jnp.int32).at[order].set(jnp.arange(order.size, dtype=jnp.int32))
    return place - _start(group)


def group_quantile(
    values: Float[Array, "B"],
    group: Int[Array, "B"],
    fraction: float,
    where: Bool[Array, "B"] | None = None,
) -> Float[Array, "B"]:
    """The quantile of a group with linear interpolation, the default rule of numpy.

    Args:
      values: one number per rollout.
      group: id of the group of each rollout.
      fraction: in [0, 1].
      where: the rows that count; a group without any has 0.
    """
    counted = jnp.ones(group.shape, bool) if where is None else where
    return scoped_quantile(values[:, None], counted[:, None], group_sets(group), fraction)[:, 0]


def _start(group):
    """Number of rows in groups of smaller id: where the group begins in sorted order."""
    return jnp.searchsorted(jnp.sort(group), group).astype(jnp.int32)
