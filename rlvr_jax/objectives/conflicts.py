"""Tokens that right and wrong answers to a prompt share, in place and from the edge inwards.

An opening that rollouts of both signs have in common is pushed up by some and down by others. Two
tokens are the same here if their ids and their positions in the response agree; positions count the
tokens on the mask, from the first one forward and from the last one backward.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.core import Transform, describe, stateless
from rlvr_jax.objectives.groups import group_count
from rlvr_jax.objectives.masked import masked_count, masked_mean, masked_sum
from rlvr_jax.types import Rollouts, replace

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
    mask = rollouts.mask
    rank = jnp.cumsum(mask, axis=1, dtype=jnp.int32) - 1
    from_end = masked_count(mask, axis=1)[:, None] - 1 - rank
    sign = jnp.sign(masked_sum(advantage, mask, axis=1))
    return Conflicts(*(_stretch(place, sign, rollouts) for place in (rank, from_end)))


def weigh_conflicts(positive: float, negative: float) -> Transform:
    """Weighs tokens in conflict by the sign of their rollout.

    weight' = weight · f, f = `positive` in rollouts with A > 0 and `negative` in those with A < 0,
    once for the stretch from the start and once for that up to the end.

    Args:
      positive, negative: the factors.
    Reads: advantage, tokens, group, mask. Writes: weight. Metrics: conflict_share.
    Source: GTPO, https://github.com/winstonsmith1897/GTPO.
    """

    def apply(signals, context, state):
        found = find_conflicts(signals.advantage, context.rollouts)
        factor = jnp.where(signals.advantage > 0, positive, negative).astype(signals.weight.dtype)
        weight = jnp.where(found.forward, factor, 1) * jnp.where(found.backward, factor, 1)
        either = found.forward | found.backward
        metrics = {"conflict_share": masked_mean(either, signals.mask)}
        return replace(signals, weight=signals.weight * weight), state, metrics

    label = describe("weigh_conflicts", positive=float(positive), negative=float(negative))
    return stateless(apply, label=label)


def divide_by_conflicts() -> Transform:
    """Divides the weights of a rollout by the length of its longer stretch in conflict, at least 1.

    Reads: advantage, tokens, group, mask. Writes: weight. Metrics: none.
    Source: the released code of GTPO, https://github.com/winstonsmith1897/GTPO.
    """

    def apply(signals, context, state):
        divisor = conflict_length(find_conflicts(signals.advantage, context.rollouts))
        divisor = jnp.maximum(divisor, 1)[:, None].astype(signals.weight.dtype)
        return replace(signals, weight=signals.weight / divisor), state, {}

    return stateless(apply, label="divide_by_conflicts()")


def conflict_length(found: Conflicts) -> Int[Array, "B"]:
    """Tokens of the longer of the two stretches of each rollout."""
    return jnp.maximum(masked_count(found.forward, axis=1), masked_count(found.backward, axis=1))


def _stretch(place, sign, rollouts):
    """Tokens of the unbroken stretch in conflict, counted from place 0, [B, T]."""
    mask, (rows, width) = rollouts.mask, place.shape
    # Tokens side by side by their place, -1 where a rollout has none.
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    column = jnp.where(mask, place, width)
    ids = jnp.full((rows, width), -1, jnp.int32)
    ids = ids.at[row, column].set(rollouts.tokens.astype(jnp.int32), mode="drop")
    shared = _shared_by_both(ids, sign, rollouts.group)
    unbroken = jnp.cumsum(~shared, axis=1) == 0
    return mask & jnp.take_along_axis(unbroken, jnp.where(mask, place, 0), axis=1)


def _shared_by_both(ids, sign, group):
    """Places at which rollouts of either sign in the group have the row's own id, [B, T].

    Rows are compared with those d further on, in the order of the groups, for d below the size of
    the largest group.
    """
    order = jnp.argsort(group)
    ids, sign, group = ids[order], sign[order], group[order]
    taken = (ids >= 0) & (sign != 0)[:, None]

    def compare(carry):
        distance, positive, negative = carry
        for shift in (distance, -distance):
            same = taken & (jnp.roll(ids, shift, axis=0) == ids)
            same = same & (jnp.roll(group, shift) == group)[:, None]
            other = jnp.roll(sign, shift)[:, None]
            positive, negative = positive | (same & (other > 0)), negative | (same & (other < 0))
        return distance + 1, positive, negative

    own = sign[:, None]
    start = (jnp.ones((), jnp.int32), taken & (own > 0), taken & (own < 0))
    most = jnp.max(group_count(group))
    _, positive, negative = jax.lax.while_loop(lambda carry: carry[0] < most, compare, start)
    return (positive & negative)[jnp.argsort(order)]
