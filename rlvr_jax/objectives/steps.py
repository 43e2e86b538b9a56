"""The steps of responses as rows of a table: column s of row i is the s-th step of rollout i.

A step (or a turn) is the tokens on the mask that share an id ≥ 0. Steps stand in the order of their
ids, ids that do not occur are skipped, and a statistic over steps counts each once, whatever its
length. A table has the width T of the tokens, for there can be no more steps; `exists` says which
columns hold one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

__all__ = [
    "Steps",
    "at_tokens",
    "find_steps",
    "next_step",
    "previous_step",
    "step_mean",
    "step_sum",
]


class Steps(NamedTuple):
    """The steps of a batch.

    Fields:
      index: int [B, T], column of the step a token belongs to; read on `member` only.
      member: bool [B, T], tokens that belong to a step.
      exists: bool [B, T], columns that hold a step.
    """

    index: Int[Array, "B T"]
    member: Bool[Array, "B T"]
    exists: Bool[Array, "B T"]


def find_steps(ids: Int[Array, "B T"], mask: Bool[Array, "B T"]) -> Steps:
    """Numbers the steps of each row from 0; tokens with a negative id are in none.

    Args:
      ids: of steps or turns, in any order along the row.
      mask: the tokens that count.
    """
    member = mask & (ids >= 0)
    last = jnp.iinfo(ids.dtype).max
    keys = jnp.where(member, ids, last)
    ordered = jnp.sort(keys, axis=1)
    begins = jnp.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)))
    rank = jnp.cumsum(begins, axis=1, dtype=jnp.int32)
    place = jax.vmap(jnp.searchsorted)(ordered, keys)
    index = jnp.take_along_axis(rank, place, axis=1)
    count = jnp.max(jnp.where(member, index + 1, 0), axis=1, keepdims=True)
    column = jnp.arange(ids.shape[1], dtype=jnp.int32)[None]
    return Steps(index, member, column < count)


def step_sum(values: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """Sum over the tokens of each step, as a table; 0 where there is no step."""
    rows, width = values.shape
    flat = jnp.arange(rows, dtype=jnp.int32)[:, None] * width + steps.index
    terms = jnp.where(steps.member, values, 0)
    total = jax.ops.segment_sum(terms.ravel(), flat.ravel(), num_segments=rows * width)
    return jnp.where(steps.exists, total.reshape(rows, width), 0)


def step_mean(values: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """Mean over the tokens of each step, as a table; 0 where there is no step."""
    count = step_sum(jnp.ones_like(values), steps)
    return step_sum(values, steps) / jnp.maximum(count, 1)


def at_tokens(table: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """What a table says about the step of each token; 0 for tokens in none."""
    return jnp.where(steps.member, jnp.take_along_axis(table, steps.index, axis=1), 0)


def next_step(table: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """The entry of the following step of the row, as a table; 0 for the last one."""
    following = jnp.pad(jnp.where(steps.exists, table, 0)[:, 1:], ((0, 0), (0, 1)))
    return jnp.where(steps.exists, following, 0)


def previous_step(table: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """The entry of the preceding step of the row, as a table; 0 for the first one."""
    return jnp.where(steps.exists, jnp.pad(table[:, :-1], ((0, 0), (1, 0))), 0)
