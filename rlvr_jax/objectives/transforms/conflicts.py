"""Tokens that right and wrong answers to a prompt share, in place and from the edge inwards.

An opening that rollouts of both signs have in common is pushed up by some and down by others. Two
tokens are the same here if their ids and their positions in the response agree; positions count the
tokens on the mask, from the first one forward and from the last one backward.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_count
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean, masked_rank, masked_sum
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = [
    "Conflicts",
    "conflict_length",
    "divide_by_conflicts",
    "find_conflicts",
    "weigh_conflicts",
]


class Conflicts(NamedTuple):
    """Tokens in conflict, [B, T] bool: the unbroken stretch from the start, and up to the end."""

    forward: Bool[Array, "B T"]
    backward: Bool[Array, "B T"]


def find_conflicts(advantage: Float[Array, "B T"], rollouts: Rollouts) -> Conflicts:
    """Finds the stretches that a rollout shares, token by token, with rollouts of both signs.

    A token is in conflict if some rollout of the group with positive advantage and some with
    negative advantage have its id at its position. Rollouts of advantage 0 take no part.

    Args:
      advantage: equal on the tokens of a rollout.
    Reads: tokens, mask, group.
    """
    mask, (rows, width) = rollouts.mask, rollouts.mask.shape
    place = masked_rank(mask) - 1
    count = masked_count(mask, axis=1)[:, None]
    sign = jnp.sign(masked_sum(advantage, mask, axis=1))
    # Tokens side by side, from the first and from the last one; -1 where a rollout has none.
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    column = jnp.arange(width, dtype=jnp.int32)[None]
    text = jnp.full((rows, width), -1, jnp.int32)
    text = text.at[row, jnp.where(mask, place, width)].set(
        rollouts.tokens.astype(jnp.int32), mode="drop"
    )
    back = count - 1 - column
    reversed_text = jnp.take_along_axis(text, jnp.maximum(back, 0), axis=1)
    reversed_text = jnp.where(back >= 0, reversed_text, -1)
    from_start = _unbroken(text, sign, rollouts.group)
    from_end = _unbroken(reversed_text, sign, rollouts.group)
    # As columns, one number per rollout, so that what reads the stretches does not count again.
    after = jnp.where(mask & (place >= from_start), column, width)
    before = jnp.where(mask & (place < count - from_end), column, -1)
    return Conflicts(
        mask & (column < jnp.min(after, axis=1, keepdims=True, initial=width)),
        mask & (column > jnp.max(before, axis=1, keepdims=True, initial=-1)),
    )


@part(writes={"weight"})
def weigh_conflicts(positive: NonNegative, negative: NonNegative) -> Transform:
    """Weighs tokens in conflict by the sign of their rollout.

    weight' = weight · f, f = `positive` in rollouts with A > 0 and `negative` in those with A < 0,
    once for the stretch from the start and once for that up to the end.

    Args:
      positive, negative: the factors, at least 0.
    Reads: advantage, tokens, group, mask. Writes: weight. Metrics: conflict_share.
    Raises:
      ValueError: a negative factor.
    Source: GTPO, https://github.com/winstonsmith1897/GTPO.
    """

    def apply(signals, context, state):
        found = find_conflicts(signals.advantage, context.rollouts)
        factor = jnp.where(signals.advantage > 0, positive, negative).astype(signals.weight.dtype)
        weight = jnp.where(found.forward, factor, 1) * jnp.where(found.backward, factor, 1)
        either = found.forward | found.backward
        metrics = {"conflict_share": masked_mean(either, signals.mask)}
        return replace(signals, weight=signals.weight * weight), state, metrics

    return apply


@part(writes={"weight"})
def divide_by_conflicts() -> Transform:
    """Divides the weights of a rollout by the length of its longer stretch in conflict, at least 1.

    Reads: advantage, tokens, group, mask. Writes: weight. Metrics: none.
    Source: the released code of GTPO, https://github.com/winstonsmith1897/GTPO.
    """

    def apply(signals, context, state):
        divisor = conflict_length(find_conflicts(signals.advantage, context.rollouts))
        divisor = jnp.maximum(divisor, 1)[:, None].astype(signals.weight.dtype)
        return replace(signals, weight=signals.weight / divisor), state, {}

    return apply


def conflict_length(found: Conflicts) -> Int[Array, "B"]:
    """Tokens of the longer of the two stretches of each rollout."""
    return jnp.maximum(masked_count(found.forward, axis=1), masked_count(found.backward, axis=1))


def _unbroken(text, sign, group):
    """How many tokens from place 0 on each rollout shares with rollouts of both signs, [B, 1]."""
    shared = _shared_by_both(text, sign, group)
    column = jnp.arange(text.shape[1], dtype=jnp.int32)[None]
    first_break = jnp.where(shared, text.shape[1], column)
    return jnp.min(first_break, axis=1, keepdims=True, initial=text.shape[1])


def _shared_by_both(text, sign, group):
    """Places at which rollouts of either sign in the group have the row's own token, [B, T].

    One of either sign is the row itself, so it is compared with those of the opposite sign: with
    member after member of its group, as often as the largest group has members.
    """
    order, count = jnp.argsort(group), group_count(group)
    start = jnp.searchsorted(group[order], group).astype(jnp.int32)

    def compare(carry):
        member, shared = carry
        other = order[jnp.minimum(start + member, group.shape[0] - 1)]
        opposite = (member < count) & (sign * sign[other] < 0)
        return member + 1, shared | (opposite[:, None] & (text == text[other]))

    carry = (jnp.zeros((), jnp.int32), jnp.zeros(text.shape, bool))
    _, shared = jax.lax.while_loop(lambda carry: carry[0] < jnp.max(count), compare, carry)
    return shared & (text >= 0)
