"""Rows that branched off one another: which tokens they share, and where a tree of them branches.

A row knows its `parent`, a `rollout_id`, and its `branch_position`, the first token of its own.
Rows of a batch whose parent is not among them are as if they had none.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int

__all__ = ["parent_rows"]


def parent_rows(parent: Int[Array, "B"], rollout_id: Int[Array, "B"]) -> Int[Array, "B"]:
    """The row of each row's parent, -1 without one."""
    found = (rollout_id[None] == parent[:, None]) & (parent >= 0)[:, None]
    row = jnp.argmax(found, axis=1).astype(jnp.int32)
    return jnp.where(jnp.any(found, axis=1), row, -1)
