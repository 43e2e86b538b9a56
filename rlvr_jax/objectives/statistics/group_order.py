"""Order within a group: ranks, quantiles, and groups numbered in the order of their ids.

Ties are broken by `rollout_id`, so nothing depends on the order of the rows.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Shaped

from rlvr_jax.objectives.statistics.scopes import group_sets, scoped_quantile
from rlvr_jax.types import Ids, RowMask, Rows


def group_index(group: Int[Array, "B"], where: Bool[Array, "B"] | None = None) -> Int[Array, "B"]:
    """Numbers the groups 0, 1, … in the order of their ids.

    Args:
      where: the rows that count, in whole groups; other rows get the next number after these.
    """
    if where is not None:
        group = jnp.where(where, group, jnp.iinfo(group.dtype).max)
    ordered = jnp.sort(group)
    starts = jnp.concatenate([jnp.zeros(1, bool), ordered[1:] != ordered[:-1]])
    index = jnp.cumsum(starts, dtype=jnp.int32)
    return index[jnp.searchsorted(ordered, group)]


def group_rank(values: Shaped[Array, "B"], group: Ids, rollout_id: Ids) -> Ids:
    """Rank of each rollout in its group by ascending value, from 0; ties by `rollout_id`."""
    order = jnp.lexsort((rollout_id, values, group))
    place = jnp.zeros(order.shape, jnp.int32).at[order].set(jnp.arange(order.size, dtype=jnp.int32))
    # Groups of smaller id come first in sorted order.
    return place - jnp.searchsorted(jnp.sort(group), group).astype(jnp.int32)


def group_quantile(values: Rows, group: Ids, fraction: float, where: RowMask | None = None) -> Rows:
    """The quantile of a group, as `masked_quantile` defines it; 0 for a group without rows.

    Args:
      values, group: value and group of each row.
      fraction: fraction of the quantile, in [0, 1].
      where: rows that count; None: all.
    """
    counted = jnp.ones(group.shape, bool) if where is None else where
    return scoped_quantile(values[:, None], counted[:, None], group_sets(group), fraction)[:, 0]
