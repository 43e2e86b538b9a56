"""Softmax attention of grouped heads, in blocks where there are many queries.

The scores of all queries are [B, heads, S, T] numbers: 9.5 GB per row with 9216 tokens and 28
heads. On TPU a kernel has them on the chip (`policy/flash.py`). Elsewhere, and in cases without the
kernel, the scores of one block of queries exist at a time. The backward pass computes them again.
Short sequences are one block. `attend` takes keys as [.., H, T]: a CPU multiplies a single query by
them in half the time of [.., T, H].
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.policy import bitwise, products
from rlvr_jax.policy.config import ModelConfig, wide_dtype
from rlvr_jax.policy.flash import flash_attention, flash_serves

QUERIES = 256
"""Queries of a block: at 9216 keys, 9.4 MB of float32 scores for each head of each row."""

STRIP = 4
"""Most blocks of a strip: with one of 16 tokens, attention takes twice as long on a CPU."""

NOWHERE = 2**20
"""A position after all others, for padding: no query sees it."""


class Groups(NamedTuple):
    """Parts of a sequence: the common opening of all prompts, then the rest of each prompt, then
    the responses to each prompt in order.

    Fields:
      opening: tokens that all prompts begin with; they occur once.
      prompts: how many there are.
      prompt_tokens: width of a prompt after the opening, padding included.
      responses: to each prompt, of equal width.
    """

    opening: int
    prompts: int
    prompt_tokens: int
    responses: int


class Heads(NamedTuple):
    """Queries of N heads, keys and values of K, of a layer's attention."""

    query: Array
    key: Array
    value: Array


def attend(
    heads: Heads,
    own: Int[Array, "b S"],
    slots: Int[Array, "b T"],
    sliding: Bool[Array, ""],
    config: ModelConfig,
) -> Float[Array, "B S NH"]:
    """Softmax attention of N query heads over K shared key/value heads; softmax in float32.

    Args:
      heads: queries [B, S, N, H], keys [B, K, H, T] and values [B, K, T, H].
      own: place of each query: it sees the keys at places up to it, or up to it in its window.
      slots: place of each key; rising, if `config.bitwise`.
      sliding: this layer has the sliding window; read only if some layers have one.
      config: shape of the model.
    """
    if config.bitwise:
        return bitwise.attention(_attend, config, heads, own, slots, sliding)
    return _attend(heads, own, slots, sliding, config)


def _attend(heads: Heads, own, slots, sliding, config: ModelConfig) -> Array:
    attended = _block if heads.query.shape[1] <= 2 * QUERIES else _in_blocks
    grouped = heads._replace(query=grouped_heads(heads.query, heads.key.shape[1]))
    y = by_token(attended(grouped, own, slots, sliding, config))
    return y.reshape(*y.shape[:2], y.shape[2] * y.shape[3])


def grouped_heads(query: Float[Array, "B S N H"], kv_heads: int) -> Float[Array, "B K G S H"]:
    """Query heads by the key/value head that they share."""
    batch, length, heads, size = query.shape
    query = query.transpose(0, 2, 1, 3)
    return query.reshape(batch, kv_heads, heads // kv_heads, length, size)


def by_token(y: Float[Array, "B K G S X"]) -> Float[Array, "B S N X"]:
    """The way back from `grouped_heads`."""
    batch, kv_heads, group, length, size = y.shape
    return y.reshape(batch, kv_heads * group, length, size).transpose(0, 2, 1, 3)


def attend_in_order(
    heads: Heads,
    positions: Int[Array, "b T"],
    sliding: Bool[Array, ""],
    config: ModelConfig,
    mesh: Mesh | None,
) -> Float[Array, "B S NH"]:
    """Attention of the last S of T tokens to those before them and to themselves.

    Args:
      heads: queries [B, S, N, H], keys and values [B, T, K, H].
      positions: of all T tokens, rising along the sequence; those at `NOWHERE` are padding, which
        no other token sees. The results at padding have no meaning.
      sliding: this layer has the sliding window.
      config: shape of the model.
      mesh: that rows and heads are split over.
    """
    length = heads.query.shape[1]
    if flash_serves(config, length, mesh):
        scalar = config.query_pre_attn_scalar or config.head_size
        return flash_attention(*heads, positions < NOWHERE, scalar, mesh)
    own = positions[:, positions.shape[1] - length :]
    if config.bitwise:
        heads, positions = _by_position(heads, positions)
    key, value = heads.key.transpose(0, 2, 3, 1), heads.value.transpose(0, 2, 1, 3)
    return attend(Heads(heads.query, key, value), own, positions, sliding, config)


def _by_position(heads: Heads, positions: Int[Array, "b T"]) -> tuple[Heads, Int[Array, "b T"]]:
    """Keys and values in the order of a cache: padding of a prompt is at the end."""
    order = jnp.argsort(positions, axis=1)
    rows = jnp.arange(len(heads.key), dtype=order.dtype)[:, None]
    key, value = (each[rows, order] for each in heads[1:])
    return Heads(heads.query, key, value), jnp.take_along_axis(positions, order, axis=1)


def attend_in_groups(
    heads: Heads,
    positions: Int[Array, "B S"],
    groups: Groups,
    sliding: Bool[Array, ""],
    config: ModelConfig,
    mesh: Mesh | None,
) -> Float[Array, "B S NH"]:
    """Attention where a sequence is made of prompts and responses to them.

    The opening sees itself, a prompt the opening and itself, a response the opening, its prompt and
    itself, each up to the token's position.

    Args:
      heads: queries [B, S, N, H], keys and values [B, S, K, H].
      positions: of all tokens.
      groups: sizes of the parts of a sequence.
      sliding: this layer has the sliding window.
      config: shape of the model.
      mesh: that rows and heads are split over.
    """
    query, key, value = heads
    batch, per_prompt = query.shape[0], groups.responses
    alone = groups.opening == 0 and groups.prompts == per_prompt == 1
    if alone and flash_serves(config, query.shape[1], mesh):
        # A prompt and its response are one sequence, whose parts would be copied. The kernel skips
        # what is later; scores in blocks would be made for all keys of a prompt's tokens.
        return attend_in_order(heads, positions, sliding, config, mesh)
    first, second = groups.opening, groups.opening + groups.prompts * groups.prompt_tokens
    prompts = batch * groups.prompts
    rows = prompts * per_prompt
    length = (query.shape[1] - second) // (groups.prompts * per_prompt)

    def opening(x):
        return x[:, :first]

    def prompt(x):
        return x[:, first:second].reshape(prompts, groups.prompt_tokens, *x.shape[2:])

    def responses(x):
        return x[:, second:].reshape(rows, length, *x.shape[2:])

    def whole_prompt(x):
        before = jnp.repeat(opening(x), groups.prompts, axis=0)
        return jnp.concatenate([before, prompt(x)], axis=1)

    def with_prompt(x):
        before = jnp.repeat(whole_prompt(x), per_prompt, axis=0)
        return jnp.concatenate([before, responses(x)], axis=1)

    def attended(asking, seen):
        own = Heads(asking(query), seen(key), seen(value))
        y = attend_in_order(own, seen(positions), sliding, config, mesh)
        return y.reshape(batch, y.shape[0] // batch * y.shape[1], y.shape[2])

    parts = [attended(prompt, whole_prompt), attended(responses, with_prompt)]
    if first:
        parts.insert(0, attended(opening, opening))
    return jnp.concatenate(parts, axis=1)


class Paths(NamedTuple):
    """Parts of a sequence that is made of blocks of trees (`policy.trees`).

    Fields:
      blocks: of each strip, from the root to its last block, after -1.
      slot: of each block in the strips, which are the last ones of each path.
    """

    blocks: Int[Array, "R N D"]
    slot: Int[Array, "R S"]


def attend_in_tree(
    heads: Heads,
    paths: Paths,
    sliding: Bool[Array, ""],
    config: ModelConfig,
    mesh: Mesh | None,
) -> Float[Array, "R L NH"]:
    """Attention of a tree's tokens to the blocks on their paths and, in order, to their own block.

    Args:
      heads: queries [R, S Q, N, H], keys and values [R, S Q, K, H].
      paths: blocks on the path to each strip.
      sliding: this layer has the sliding window.
      config: shape of the model.
      mesh: that rows and heads are split over.
    """
    (number, tokens), (_, strips, depth) = heads.query.shape[:2], paths.blocks.shape
    blocks = paths.slot.shape[1]
    size, strip = tokens // blocks, min(STRIP, depth)
    # At a time, the keys of all paths are not more than there are tokens.
    steps = 1 if depth * size <= 2 * QUERIES else -(-strips * depth // blocks)
    missing = -strips % steps
    path = jnp.pad(paths.blocks, ((0, 0), (0, missing), (0, 0)), constant_values=-1)
    path = jnp.moveaxis(path.reshape(number, steps, -1, depth), 1, 0)
    # Wide, so that the gradients of all steps are added up in float32.
    dtype = heads.key.dtype
    wide = wide_dtype(dtype) if steps > 1 else dtype
    sources = Heads._make(x.reshape(number, blocks, size, *x.shape[2:]).astype(wide) for x in heads)

    def attended(path, sources):
        there = path >= 0
        # The first tokens of a path, before which padding has a position that no query sees.
        first = depth - jnp.sum(there, axis=2, keepdims=True, dtype=jnp.int32)
        places = jnp.arange(depth * size, dtype=jnp.int32)[None, None] - first * size
        positions = jnp.where(places >= 0, places, NOWHERE)
        together = number * path.shape[1]

        def gathered(source, path):
            found = jax.vmap(lambda x, i: x[i])(source.astype(dtype), jnp.maximum(path, 0))
            return found.reshape(together, path.shape[2] * size, *source.shape[3:])

        own = Heads(
            gathered(sources.query, path[:, :, depth - strip :]),
            *(gathered(source, path) for source in sources[1:]),
        )
        y = attend_in_order(own, positions.reshape(together, -1), sliding, config, mesh)
        return y.reshape(number, -1, size, y.shape[2])

    if steps == 1:
        y = attended(path[0], sources)
    else:
        once = jax.checkpoint(attended)
        y = jax.lax.scan(lambda _, path: (None, once(path, sources)), None, path)[1]
        y = jnp.moveaxis(y, 0, 1).reshape(number, -1, size, y.shape[-1])
    return jax.vmap(lambda x, i: x[i])(y, paths.slot).reshape(number, tokens, -1)


def _block(heads: Heads, own, slots, sliding, config: ModelConfig) -> Array:
    """Attention of the queries [B K G S H] of one block, all their scores at once."""
    visible = slots[:, None] <= own[:, :, None]
    if config.sliding_layers:
        near = slots[:, None] > own[:, :, None] - config.sliding_window
        visible &= near | ~sliding
    scalar = config.query_pre_attn_scalar or heads.query.shape[-1]
    return _attention(scalar, *heads, visible[:, None, None])


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attention(scalar: float, query, key, value, visible) -> Float[Array, "B K G S H"]:
    """softmax(query · key / √scalar) · value over visible keys; the softmax in float32."""
    return _forward(scalar, query, key, value, visible)[0]


def _forward(scalar, query, key, value, visible):
    dtype = query.dtype
    scores = products.einsum("bkgsh,bkht->bkgst", query, key) / _root(scalar, dtype)
    scores = jnp.where(visible, scores, jnp.finfo(dtype).min)
    probabilities = jax.nn.softmax(scores.astype(wide_dtype(dtype)), axis=-1).astype(dtype)
    y = products.einsum("bkgst,bkth->bkgsh", probabilities, value)
    return y, (query, key, value, probabilities, y)


def _backward(scalar, residuals, dy):
    # Products in which the matrix over S and T is never the one to be transposed.
    query, key, value, probabilities, y = residuals
    wide, dtype = wide_dtype(probabilities.dtype), probabilities.dtype
    dvalue = products.einsum("bkgsh,bkgst->bkht", dy, probabilities).swapaxes(2, 3)
    dprobabilities = products.einsum("bkgsh,bkth->bkgst", dy, value)
    # Σ_t p · dp is the product of the output with its cotangent: H terms instead of T.
    mean = jnp.sum(y.astype(wide) * dy.astype(wide), axis=-1, keepdims=True)
    dscores = (probabilities.astype(wide) * (dprobabilities.astype(wide) - mean)).astype(dtype)
    dscores /= _root(scalar, dtype)
    dquery = products.einsum("bkgst,bkht->bkgsh", dscores, key)
    dkey = products.einsum("bkgsh,bkgst->bkht", query, dscores)
    return dquery, dkey, dvalue, None


def _root(scalar, dtype):
    return jnp.sqrt(jnp.asarray(scalar, dtype))


_attention.defvjp(_forward, _backward)


def _in_blocks(heads: Heads, own, slots, sliding, config: ModelConfig) -> Array:
    """The same, one block after the other."""
    query, key, value = heads
    dtype, length = query.dtype, query.shape[3]
    blocks = -(-length // QUERIES)
    missing = blocks * QUERIES - length
    query = jnp.pad(query, ((0, 0),) * 3 + ((0, missing), (0, 0)))
    own = jnp.pad(own, ((0, 0), (0, missing)))
    query = jnp.moveaxis(query.reshape(*query.shape[:3], blocks, QUERIES, -1), 3, 0)
    own = jnp.moveaxis(own.reshape(own.shape[0], blocks, QUERIES), 1, 0)
    # Wide, so that the gradients of all blocks are added up in float32.
    wide = wide_dtype(dtype)
    keys, values = key.astype(wide), value.astype(wide)

    @jax.checkpoint
    def block(query, own, keys, values):
        part = Heads(query, keys.astype(dtype), values.astype(dtype))
        return _block(part, own, slots, sliding, config)

    def step(_, part):
        return None, block(*part, keys, values)

    _, y = jax.lax.scan(step, None, (query, own))
    y = jnp.moveaxis(y, 0, 3)
    return y.reshape(*y.shape[:3], blocks * QUERIES, -1)[:, :, :, :length]
