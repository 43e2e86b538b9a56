"""Statistics over the rows of one response, at each row.

A trace is all rows with one id in the record `trace`, ordered by `rollout_id`. The id -1 marks a
row that is a whole response. The functions of `groups` also take `trace_ids` for groups.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from rlvr_jax.objectives.statistics.groups import group_max, group_sum
from rlvr_jax.types import Ids, Rows

__all__ = ["parent_rows", "trace_ids"]


def trace_ids(trace: Int[Array, "B"] | None, rollout_id: Int[Array, "B"]) -> Int[Array, "B"]:
    """One number for each trace; a row that is a whole response gets a separate number."""
    alone = -1 - rollout_id
    return alone if trace is None else jnp.where(trace < 0, alone, trace)


def last_of_trace(ids: Int[Array, "B"], rollout_id: Int[Array, "B"]) -> Bool[Array, "B"]:
    """The last row of each trace; `ids` are those of `trace_ids`."""
    return rollout_id == group_max(rollout_id.astype(float), ids).astype(rollout_id.dtype)


def of_last_row(values: Rows, ids: Ids, rollout_id: Ids) -> Rows:
    """The value of the trace's last row."""
    return group_sum(values, ids, where=last_of_trace(ids, rollout_id))


def parent_rows(parent: Int[Array, "B"], rollout_id: Int[Array, "B"]) -> Int[Array, "B"]:
    """The row index of each row's parent; -1 without a parent."""
    found = (rollout_id[None] == parent[:, None]) & (parent >= 0)[:, None]
    row = jnp.argmax(found, axis=1).astype(jnp.int32)
    return jnp.where(jnp.any(found, axis=1), row, -1)
