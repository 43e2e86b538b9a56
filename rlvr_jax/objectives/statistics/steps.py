"""Steps of responses as a table: column s of row i is the s-th step of rollout i.

A step (a reasoning step or a turn) is the tokens on the mask with one id ≥ 0. Steps are ordered by
their ids, and ids that do not occur are skipped. A statistic over steps counts each step once. A
table has T columns, the largest possible number of steps; `exists` marks the columns with a step.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.statistics.masked import masked_rank


class Steps(NamedTuple):
    """The reasoning steps of a batch: the step of each token, and which steps exist.

    Fields:
      index: int [B, T], column of the token's step; 0 for tokens without a step.
      member: bool [B, T], tokens that belong to a step.
      exists: bool [B, T], columns that hold a step.
    """

    index: Int[Array, "B T"]
    member: Bool[Array, "B T"]
    exists: Bool[Array, "B T"]


def find_steps(ids: Int[Array, "B T"], mask: Bool[Array, "B T"]) -> Steps:
    """Numbers the steps of each row from 0; tokens with a negative id have no step."""
    member = mask & (ids >= 0)
    width = ids.shape[1]
    # Ids that count steps are below T. Others are rare, and sorting them takes ten times as long.
    fit = jnp.all(jnp.where(member, ids, 0) < width)
    rank = jax.lax.cond(fit, _ranks_by_table, _ranks_by_sort, ids, member)
    count = jnp.max(jnp.where(member, rank, 0), axis=1, keepdims=True, initial=0)
    column = jnp.arange(width, dtype=jnp.int32)[None]
    return Steps(jnp.where(member, rank - 1, 0), member, column < count)


def step_ends(steps: Steps) -> Bool[Array, "B T"]:
    """The last token of each step."""
    rows, width = steps.member.shape
    position, row = jnp.arange(width, dtype=jnp.int32)[None], _row(rows)
    own, flat = jnp.where(steps.member, position, -1), row * width + steps.index
    last = jax.ops.segment_max(own.ravel(), flat.ravel(), num_segments=rows * width)
    return steps.member & (position == last.reshape(rows, width)[row, steps.index])


def step_sum(values: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """Sum over the tokens of each step, as a table; 0 where there is no step."""
    terms = jnp.where(steps.member, values, 0)
    table = jnp.zeros(steps.exists.shape, terms.dtype)
    return table.at[_row(values.shape[0]), steps.index].add(terms)


def step_mean(values: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """Mean over the tokens of each step, as a table; 0 where there is no step."""
    count = step_sum(jnp.ones_like(values), steps)
    return step_sum(values, steps) / jnp.maximum(count, 1)


def at_tokens(table: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """The table's entry for the step of each token; 0 for tokens without a step."""
    own = jnp.take_along_axis(table, steps.index, axis=1, mode="clip")
    return jnp.where(steps.member, own, 0)


def next_step(table: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """The entry of the following step of the row, as a table; 0 for the last one."""
    following = jnp.pad(jnp.where(steps.exists, table, 0)[:, 1:], ((0, 0), (0, 1)))
    return jnp.where(steps.exists, following, 0)


def previous_step(table: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """The entry of the preceding step of the row, as a table; 0 for the first one."""
    return jnp.where(steps.exists, jnp.pad(table[:, :-1], ((0, 0), (1, 0))), 0)


def _row(rows):
    return jnp.arange(rows, dtype=jnp.int32)[:, None]


def _ranks_by_table(ids, member):
    """The number of ids of the row that are at most the id of each token, for ids below T."""
    rows, width = ids.shape
    place = jnp.where(member, ids, width)
    occurs = jnp.zeros((rows, width), bool).at[_row(rows), place].set(True, mode="drop")
    return jnp.take_along_axis(masked_rank(occurs), jnp.where(member, ids, 0), axis=1)


def _ranks_by_sort(ids, member):
    """The result of `_ranks_by_table` for any ids."""
    keys = jnp.where(member, ids, jnp.iinfo(ids.dtype).max)
    ordered = jnp.sort(keys, axis=1)
    begins = jnp.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    place = jax.vmap(jnp.searchsorted)(ordered, keys)
    return jnp.take_along_axis(masked_rank(begins), place, axis=1)
