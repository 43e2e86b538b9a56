"""Rows that branched off one another: which tokens they share, and where a tree of them branches.

A row knows its `parent`, a `rollout_id`, and its `branch_position`, the first token of its own.
Rows of a batch whose parent is not among them are as if they had none.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = ["branch_points", "mean_of_copies", "parent_rows", "token_owner"]


def parent_rows(parent: Int[Array, "B"], rollout_id: Int[Array, "B"]) -> Int[Array, "B"]:
    """The row of each row's parent, -1 without one."""
    found = (rollout_id[None] == parent[:, None]) & (parent >= 0)[:, None]
    row = jnp.argmax(found, axis=1).astype(jnp.int32)
    return jnp.where(jnp.any(found, axis=1), row, -1)


def token_owner(
    parent: Int[Array, "B"], branch_position: Int[Array, "B"], tokens: int
) -> Int[Array, "B T"]:
    """The row that drew each token: the row itself, or that of its ancestors which it shares.

    Args:
      parent: rows, of `parent_rows`.
      branch_position: the first token that is the row's own; read where it has a parent.
      tokens: T.
    """
    rows = parent.shape[0]
    places = jnp.arange(tokens, dtype=jnp.int32)[None]
    own = jnp.broadcast_to(jnp.arange(rows, dtype=jnp.int32)[:, None], (rows, tokens))

    def inherited(owner):
        shared = (parent[owner] >= 0) & (places < branch_position[owner])
        return jnp.where(shared, parent[owner], owner)

    def changes(carry):
        before, owner = carry
        return jnp.any(before != owner)

    start = own, inherited(own)
    return jax.lax.while_loop(changes, lambda carry: (carry[1], inherited(carry[1])), start)[1]


def mean_of_copies(
    values: Float[Array, "B T"], mask: Bool[Array, "B T"], owner: Int[Array, "B T"]
) -> Float[Array, "B T"]:
    """The mean of a number over the rows that have the same token; 0 off the mask.

    Args:
      owner: of `token_owner`.
    """
    places = jnp.arange(values.shape[1], dtype=jnp.int32)[None]
    nothing = jnp.zeros(values.shape, values.dtype)
    total = nothing.at[owner, places].add(jnp.where(mask, values, 0))
    number = nothing.at[owner, places].add(mask.astype(values.dtype))
    mean = total[owner, places] / jnp.maximum(number[owner, places], 1)
    return jnp.where(mask, mean, 0)


def branch_points(
    parent: Int[Array, "B"], branch_position: Int[Array, "B"], tokens: int
) -> Bool[Array, "B T"]:
    """The positions of each row where its tree branches on the row's path.

    They are 0; where the row and its ancestors branched off; where others left the row, handed
    upwards as long as the position is at most the one where the receiver itself branched off; and
    its parent's before its own.

    Args:
      parent, branch_position: as for `token_owner`.
      tokens: T.
    """
    rows = parent.shape[0]
    every = jnp.arange(rows, dtype=jnp.int32)
    places = jnp.arange(tokens, dtype=jnp.int32)[None]
    position = jnp.where(parent >= 0, branch_position, 0)

    def some_are_left(carry):
        return jnp.any(carry[0] >= 0)

    def above(row):
        return jnp.where(row >= 0, parent[row], -1)

    def of_ancestors(carry):
        current, points = carry
        own = (current >= 0)[:, None] & (places == position[current][:, None])
        return above(current), points | own

    def handed(carry):
        holder, points = carry
        to = jnp.where(holder >= 0, holder, rows)
        points = points.at[to, position].set(True, mode="drop")
        goes_on = (holder >= 0) & (position <= position[holder])
        return jnp.where(goes_on, above(holder), -1), points

    begin = jnp.broadcast_to(places == 0, (rows, tokens))
    _, points = jax.lax.while_loop(some_are_left, of_ancestors, (every, begin))
    _, points = jax.lax.while_loop(some_are_left, handed, (parent, points))

    def inherited(points):
        before = (parent >= 0)[:, None] & (places < position[:, None])
        return points | (points[parent] & before)

    def changes(carry):
        return jnp.any(carry[0] != carry[1])

    start = points, inherited(points)
    return jax.lax.while_loop(changes, lambda carry: (carry[1], inherited(carry[1])), start)[1]
