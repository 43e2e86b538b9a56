"""Attention to a cache, over the part of it that is written.

A cache has a slot for every token that may come, and a token that is drawn early sees few of them.
Keys are read in blocks up to the last slot that a query of any row sees, and under a sliding window
from the first one, with a softmax that is put together block by block; so neither the scores of all
slots exist nor is a slot read before it is written. A cache of one block is read whole.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.policy.attention import QUERIES, attend, grouped_heads, side_by_side
from rlvr_jax.policy.config import ModelConfig, wide_dtype

__all__ = ["SLOTS", "attend_to_cache", "mean_slots_read"]

SLOTS = 512
"""Slots of a block."""


class _Sums(NamedTuple):
    """What is known of the softmax after some blocks; in float32 or wider.

    Fields:
      top: largest score, [B, K, G, S, 1].
      total: Σ exp(score - top), [B, K, G, S, 1].
      mixed: Σ exp(score - top) · value, [B, K, G, S, H].
    """

    top: Array
    total: Array
    mixed: Array


def attend_to_cache(
    query: Float[Array, "B S N H"],
    keys: Float[Array, "B K H T"],
    values: Float[Array, "B K T H"],
    own: Int[Array, "B S"],
    sliding: Bool[Array, ""],
    config: ModelConfig,
) -> Float[Array, "B S NH"]:
    """Attention of tokens to the slots up to their own; as `attend`, without a gradient.

    Args:
      own: slot of each query; at T or behind it is padding, whose result means nothing.
      sliding: this layer has the sliding window; read only if some layers have one.
    """
    length, slots = query.shape[1], keys.shape[-1]
    if slots <= SLOTS:
        places = jnp.arange(slots, dtype=own.dtype)[None]
        return attend(query, keys, values, own, places, sliding, config)
    grouped = grouped_heads(query, keys.shape[1])
    if length <= 2 * QUERIES:
        return side_by_side(_over_written(grouped, keys, values, own, sliding, config))
    missing = -length % QUERIES
    grouped = jnp.pad(grouped, ((0, 0),) * 3 + ((0, missing), (0, 0)))
    own = jnp.pad(own, ((0, 0), (0, missing)), constant_values=slots)
    split = grouped.reshape(*grouped.shape[:3], -1, QUERIES, grouped.shape[-1])
    parts = jnp.moveaxis(split, 3, 0), jnp.moveaxis(own.reshape(len(own), -1, QUERIES), 1, 0)
    y = jax.lax.map(
        lambda part: _over_written(part[0], keys, values, part[1], sliding, config), parts
    )
    y = jnp.moveaxis(y, 0, 3).reshape(grouped.shape)
    return side_by_side(y[:, :, :, :length])


def mean_slots_read(first: int, last: int, slots: int) -> float:
    """Slots of a full layer that are read for a token, the mean over those at first … last - 1.

    Tokens that are given together are read for in blocks of queries, about as if each came alone.
    """
    if slots <= SLOTS:
        return slots
    return sum(SLOTS * (place // SLOTS + 1) for place in range(first, last)) / (last - first)


def _over_written(query, keys, values, own, sliding, config: ModelConfig) -> Array:
    """Attention of the queries [B K G S H], block of slots by block."""
    dtype, slots = query.dtype, keys.shape[-1]
    wide = wide_dtype(dtype)
    blocks = -(-slots // SLOTS)
    window = config.sliding_window if config.sliding_layers else None
    root = jnp.sqrt(jnp.asarray(config.query_pre_attn_scalar or query.shape[-1], dtype))
    last = jnp.max(jnp.where(own < slots, own, 0))
    first = jnp.zeros((), own.dtype)
    if window is not None:
        first = jnp.where(sliding, jnp.maximum(jnp.min(own) - window + 1, 0), first)
        first = jnp.minimum(first, last)

    def unread(carry):
        number, _ = carry
        # The second bound is never the first to be met: it tells readers of the compiled program
        # how often the loop runs at most.
        return (number <= last // SLOTS) & (number < blocks)

    def read(carry):
        number, sums = carry
        begin = number * SLOTS
        # The last block ends with the cache; what it shares with the one before is not seen twice.
        start = jnp.minimum(begin, slots - SLOTS)
        key = jax.lax.dynamic_slice_in_dim(keys, start, SLOTS, axis=3)
        value = jax.lax.dynamic_slice_in_dim(values, start, SLOTS, axis=2)
        place = start + jnp.arange(SLOTS, dtype=own.dtype)[None, None]
        visible = (place >= begin) & (place <= own[:, :, None])
        if window is not None:
            visible &= (place > own[:, :, None] - window) | ~sliding
        scores = jnp.einsum("bkgsh,bkht->bkgst", query, key) / root
        scores = jnp.where(visible[:, None, None], scores, jnp.finfo(dtype).min).astype(wide)
        top = jnp.maximum(sums.top, jnp.max(scores, axis=-1, keepdims=True))
        # A block of which a query sees nothing counts until one of which it sees something.
        before = jnp.exp(sums.top - top)
        mass = jnp.exp(scores - top)
        mixed = jnp.einsum(
            "bkgst,bkth->bkgsh", mass.astype(dtype), value, preferred_element_type=wide
        )
        total = before * sums.total + jnp.sum(mass, axis=-1, keepdims=True)
        return number + 1, _Sums(top, total, before * sums.mixed + mixed)

    nothing = jnp.zeros((*query.shape[:-1], 1), wide)
    least = jnp.full_like(nothing, jnp.finfo(dtype).min)
    sums = _Sums(least, nothing, jnp.zeros(query.shape, wide))
    _, sums = jax.lax.while_loop(unread, read, (first // SLOTS, sums))
    return (sums.mixed / sums.total).astype(dtype)
