"""Keys and values of earlier tokens, and attention to them.

A cache has a slot for every possible token, and an early token sees few of them. Keys are read in
blocks up to the last visible slot, and from the first visible one under a sliding window. The
softmax is accumulated block by block. So the scores of all slots never exist at once, and no slot
is read before it is written. A prompt of several rows is stored once and read once for all of them:
its part of the softmax is added to that of each row.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.policy import products
from rlvr_jax.policy.attention import QUERIES, Heads, attend, by_token, grouped_heads
from rlvr_jax.policy.config import ModelConfig, wide_dtype
from rlvr_jax.policy.layout import HEADS, ROWS, constrain, partition

SLOTS = 1024
"""Slots of a block. For two layers of Qwen2.5-7B on v5e-16, 16 rows a device and 8192 slots, the
compiler estimates 13.5, 11.1, 10.5 and 10.1 s with blocks of 512, 1024, 2048 and 4096 if all are
read, and 10.0 s in one piece; of small blocks fewer are."""


OWN_SLOTS = "own_slots"
"""What operations over the slots of a row's own tokens are called in a compiled program."""


class LayerCache(NamedTuple):
    """Rotated keys and values of one layer; slot = position."""

    keys: Float[Array, "B K H S"]
    values: Float[Array, "B K S H"]


class SharedCache(NamedTuple):
    """The same for R rows that answer P prompts, R / P rows side by side each.

    Rows advance together, so that a token of every row is written to one slot.

    Fields:
      prompts: of the P prompts, whole; nothing is written there.
      own: of the rows, slot = position - start.
      start: length of the prompt of each row.
      origin: None if all rows begin together. Else it is the slot of the first token of each row.
        `own` is then a ring, slot = (position - start + origin) mod slots, equal for running rows.
    """

    prompts: LayerCache
    own: LayerCache
    start: Int[Array, "R"]
    origin: Int[Array, "R"] | None = None


class _Sums(NamedTuple):
    """Sums of a softmax after some blocks, in float32 or wider.

    Fields:
      top: largest score, [..., 1].
      total: Σ exp(score - top), [..., 1].
      mixed: Σ exp(score - top) · value, [..., H].
    """

    top: Array
    total: Array
    mixed: Array


def cached_heads(config: ModelConfig, parts: int) -> int:
    """Returns the key/value heads of a cache whose heads are split over so many devices.

    If the devices do not divide the heads, each head is stored several times, so that a device has
    the heads that its queries share. All heads on each device would need several times the memory,
    and a copy of the used heads for every token.
    """
    even = math.lcm(config.num_kv_heads, parts)
    return even if config.num_heads % even == 0 else config.num_kv_heads


def written(
    cache: LayerCache | SharedCache,
    key: Float[Array, "B S K H"],
    value: Float[Array, "B S K H"],
    positions: Int[Array, "B S"],
    mesh: Mesh | None = None,
) -> LayerCache | SharedCache:
    """Returns the cache with the keys and values of tokens in it.

    Positions after the end write nothing; in a shared cache they belong to finished rows. The other
    rows have equal distances to their prompts. The last token of a prompt is already stored. It is
    written to the slot of the next token, which overwrites it.

    Args:
      cache: of one layer.
      key, value: of the model's heads; of each that the cache has several times, every copy is
        written.
      positions: of the tokens.
      mesh: that rows and heads are split over.

    Raises:
      ValueError: several tokens at a time for a shared cache.
    """
    whole = cache.own if isinstance(cache, SharedCache) else cache
    key, value = (_copied(each, whole.keys.shape[1], mesh) for each in (key, value))
    if isinstance(cache, SharedCache):
        if key.shape[1] > 1:
            raise ValueError(f"a shared cache takes one token at a time, got {key.shape[1]}")
        keys, values = cache.own
        places, slots = (positions - cache.start[:, None])[:, 0], keys.shape[-1]
        # Before its first token a row is at -1: the slot that the ring writes last.
        slot = places if cache.origin is None else (places + cache.origin) % slots
        slot = jnp.maximum(jnp.max(jnp.where(places < slots, slot, 0)), 0)
        own = LayerCache(
            jax.lax.dynamic_update_slice_in_dim(keys, key.transpose(0, 2, 3, 1), slot, axis=3),
            jax.lax.dynamic_update_slice_in_dim(values, value.transpose(0, 2, 1, 3), slot, axis=2),
        )
        return cache._replace(
            own=LayerCache(_slots_last(own.keys, 3, mesh), _slots_last(own.values, 2, mesh))
        )
    rows = jnp.arange(len(positions), dtype=positions.dtype)[:, None]
    return LayerCache(
        cache.keys.at[rows, :, :, positions].set(key, mode="drop"),
        cache.values.at[rows, :, positions].set(value, mode="drop"),
    )


def _copied(array: Float[Array, "B S K H"], heads: int, mesh: Mesh | None) -> Array:
    """Each of the K heads as often as makes so many."""
    if heads == array.shape[2]:
        return array
    return constrain(jnp.repeat(array, heads // array.shape[2], axis=2), mesh, ROWS, (), HEADS)


def _slots_last(array: Array, axis: int, mesh: Mesh | None) -> Array:
    """The array, on TPU with its slots side by side in memory, as products with a query want it.

    Left to itself the compiler lays a cache out for the writing of one slot, and copies all of it
    for the loop over blocks, for every token.
    """
    layout = Layout((*(other for other in range(array.ndim) if other != axis), axis))

    def on_tpu(x):
        if mesh is None or mesh.size == 1:
            return with_layout_constraint(x, layout)
        # Each device its own part: partitioners of some versions gather a whole array for it.
        spec = partition(x, mesh, ROWS, HEADS)
        own = jax.shard_map(
            lambda part: with_layout_constraint(part, layout),
            mesh=mesh,
            in_specs=spec,
            out_specs=spec,
            check_vma=False,
        )
        return own(x)

    return jax.lax.platform_dependent(array, tpu=on_tpu, default=lambda x: x)


def attend_to_cache(
    query: Float[Array, "B S N H"],
    cache: LayerCache | SharedCache,
    positions: Int[Array, "B S"],
    sliding: Bool[Array, ""],
    config: ModelConfig,
) -> Float[Array, "B S NH"]:
    """Softmax attention of tokens to the cache up to their own positions; softmax in float32.

    It has no gradient.

    Args:
      query: of S new tokens.
      cache: of one layer, with the keys of the new tokens.
      positions: of the queries; the result of one past the end of the cache means nothing.
      sliding: this layer has the sliding window; read only if some layers have one.
      config: shape of the model.
    Raises:
      ValueError: a shared cache and `config.bitwise`.
    """
    if config.bitwise:
        if isinstance(cache, SharedCache):
            raise ValueError("attend_to_cache: cache must be a LayerCache for a bitwise model")
        slots = jnp.arange(cache.keys.shape[-1], dtype=positions.dtype)[None]
        return attend(Heads(query, *cache), positions, slots, sliding, config)
    first = jnp.zeros_like(positions)
    if config.sliding_window is not None:
        first = jnp.where(sliding, positions - config.sliding_window + 1, first)
    if isinstance(cache, LayerCache):
        sums = _over_written(query, cache, first, positions, config)
    else:
        start, prompts = cache.start[:, None], len(cache.prompts.keys)

        def together(x):
            return x.reshape(prompts, -1, *x.shape[2:])

        last = jnp.broadcast_to(start - 1, positions.shape)
        shared = _over_written(
            together(query), cache.prompts, together(first), together(last), config
        )
        shared = jax.tree.map(lambda x: x.reshape(*query.shape[:3], -1), shared)
        with jax.named_scope(OWN_SLOTS):
            own = _over_written(
                query, cache.own, first - start, positions - start, config, cache.origin
            )
        sums = _merged(shared, own)
    y = (sums.mixed / sums.total).astype(query.dtype)
    return y.reshape(*y.shape[:2], y.shape[2] * y.shape[3])


def mean_slots_read(last: int, slots: int) -> float:
    """Slots of a full layer that are read for a token, the mean over those at 0 … last - 1.

    Tokens that are given together are read for in blocks of queries, about as if each came alone.
    """
    if slots <= SLOTS:
        return slots
    return sum(SLOTS * (place // SLOTS + 1) for place in range(last)) / last


def _over_written(query, cache: LayerCache, first, last, config: ModelConfig, origin=None) -> _Sums:
    """The softmax of queries [B S N H] over slots first … last [B S] of theirs, by token and head;
    padding has its last slot past the end. Blocks of queries one after the other.

    Args:
      origin: [B], the slot that counts as 0, the others behind it and around the end; None: slot 0
        of every row. For one query at a time.
    """
    slots, length = cache.keys.shape[-1], query.shape[1]
    grouped = grouped_heads(query, cache.keys.shape[1])
    if length <= 2 * QUERIES:
        sums = _over_blocks(grouped, cache, first, last, config, origin)
        return _Sums(*map(by_token, sums))
    missing = -length % QUERIES
    grouped = jnp.pad(grouped, ((0, 0),) * 3 + ((0, missing), (0, 0)))
    first = jnp.pad(first, ((0, 0), (0, missing)), constant_values=slots)
    last = jnp.pad(last, ((0, 0), (0, missing)), constant_values=slots)

    def split(x, axis):
        x = x.reshape(*x.shape[:axis], -1, QUERIES, *x.shape[axis + 1 :])
        return jnp.moveaxis(x, axis, 0)

    parts = split(grouped, 3), split(first, 1), split(last, 1)
    blocks = jax.lax.map(lambda part: _over_blocks(part[0], cache, *part[1:], config=config), parts)

    def joined(x):
        x = jnp.moveaxis(x, 0, 3)
        return by_token(x.reshape(*x.shape[:3], -1, x.shape[-1])[:, :, :, :length])

    return _Sums(*map(joined, blocks))


def _over_blocks(query, cache: LayerCache, first, last, config: ModelConfig, origin=None) -> _Sums:
    """The same for queries [B K G S H], block of slots by block."""
    slots = cache.keys.shape[-1]

    def counted(places):
        """Slots at `places` as the rows count them, [1 or B, slots]."""
        return places[None] if origin is None else (places[None] - origin[:, None]) % slots

    if slots <= SLOTS:
        places = jnp.arange(slots, dtype=last.dtype)
        return _block(query, cache, counted(places), first, last, config)
    blocks = -(-slots // SLOTS)
    real = last < slots
    if origin is None:
        end = jnp.max(jnp.where(real, last, -1)) // SLOTS
        begin = jnp.maximum(jnp.min(jnp.where(real, first, slots)), 0) // SLOTS
    else:
        # Up to the end where a row's slots go around it.
        end = jnp.max(jnp.where(real, jnp.minimum(last + origin[:, None], slots - 1), -1)) // SLOTS
        begin = jnp.zeros_like(end)

    def unread(carry):
        number, _ = carry
        # The second bound is never the first to be met: it tells readers of the compiled program
        # how often the loop runs at most.
        return (number <= end) & (number < blocks)

    def read(carry):
        number, sums = carry
        # The last block ends with the cache; what it shares with the one before is not seen twice.
        start = jnp.minimum(number * SLOTS, slots - SLOTS)
        key = jax.lax.dynamic_slice_in_dim(cache.keys, start, SLOTS, axis=3)
        value = jax.lax.dynamic_slice_in_dim(cache.values, start, SLOTS, axis=2)
        places = start + jnp.arange(SLOTS, dtype=last.dtype)
        where, seen = counted(places), first
        if origin is None:
            seen = jnp.maximum(first, number * SLOTS)
        else:
            where = jnp.where(places >= number * SLOTS, where, slots)
        block = _block(query, LayerCache(key, value), where, seen, last, config)
        return number + 1, _merged(sums, block)

    wide = wide_dtype(query.dtype)
    nothing = jnp.zeros((*query.shape[:-1], 1), wide)
    least = jnp.full_like(nothing, jnp.finfo(query.dtype).min)
    sums = _Sums(least, nothing, jnp.zeros(query.shape, wide))
    return jax.lax.while_loop(unread, read, (begin, sums))[1]


def _block(query, cache: LayerCache, places, first, last, config: ModelConfig) -> _Sums:
    """Of one block of slots, that the rows count as `places` [1 or B, slots].

    If a query sees none of them all count alike, until sums with one that it sees are added."""
    dtype = query.dtype
    wide = wide_dtype(dtype)
    root = jnp.sqrt(jnp.asarray(config.query_pre_attn_scalar or query.shape[-1], dtype))
    places = places[:, None]
    visible = places <= last[:, :, None]
    visible &= places >= first[:, :, None]
    scores = products.einsum("bkgsh,bkht->bkgst", query, cache.keys) / root
    scores = jnp.where(visible[:, None, None], scores, jnp.finfo(dtype).min).astype(wide)
    top = jnp.max(scores, axis=-1, keepdims=True)
    mass = jnp.exp(scores - top)
    mixed = products.einsum(
        "bkgst,bkth->bkgsh", mass.astype(dtype), cache.values, preferred_element_type=wide
    )
    return _Sums(top, jnp.sum(mass, axis=-1, keepdims=True), mixed)


def _merged(one: _Sums, other: _Sums) -> _Sums:
    """The softmax over the keys of both."""
    top = jnp.maximum(one.top, other.top)
    left, right = jnp.exp(one.top - top), jnp.exp(other.top - top)
    total = left * one.total + right * other.total
    return _Sums(top, total, left * one.mixed + right * other.mixed)
