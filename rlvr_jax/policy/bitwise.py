"""Operations whose results for a token have equal bits in every batch, on a CPU.

A sampler computes one token of many rows, a scorer many tokens of a row. XLA chooses other loops
for other shapes, and sums in another order. Then the log-probs of sampler and scorer differ by
rounding (1e-5 nats in float32), and the ratio of their probabilities is not exactly 1. With
`ModelConfig.bitwise` both use these forms:

  - Products and norms have a multiple of 64 rows.
  - Sums over the last axis add 64 columns by halves.
  - Attention takes 16 queries of a row at a time, and the keys in the order of their positions.
    Keys that are not visible add exact zeros.
  - The log-softmax of sampler and scorer is one function.

That equal shapes of such sizes have equal bits is a property of XLA and the processor. It was
measured, and `tests/policy/test_bitwise.py` measures it for random shapes. Gradients are those of
the usual forms.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.policy import products
from rlvr_jax.policy.config import ModelConfig

ROWS = 64
"""Rows of a product. With fewer, XLA's library sums in another order."""

QUERIES = 16
"""Queries of a product of attention, of 16 rows at least."""

KEYS = 64
"""Keys are a multiple of this number, and so are the columns of a sum."""


def by_rows(
    function: Callable[[Float[Array, "n D"]], Float[Array, "n ..."]], x: Float[Array, "... D"]
) -> Float[Array, "..."]:
    """Applies a function of independent rows to a multiple of `ROWS` of them."""
    rows = x.reshape(-1, x.shape[-1])
    y = function(_padded(rows, 0, ROWS))[: len(rows)]
    return y.reshape(*x.shape[:-1], *y.shape[1:])


@jax.custom_vjp
def matmul(left: Float[Array, "N D"], right: Float[Array, "D E"]) -> Float[Array, "N E"]:
    """`products.matmul`."""
    return by_rows(lambda rows: products.matmul(rows, right), left)


def _matmul_backward(residuals, slope):
    return jax.vjp(products.matmul, *residuals)[1](slope)


matmul.defvjp(lambda left, right: (matmul(left, right), (left, right)), _matmul_backward)


def total(x: Float[Array, "... D"]) -> Float[Array, "..."]:
    """Sum over the last axis: over its blocks of 64 in order, then by halves of the block."""
    x = _padded(x, x.ndim - 1, KEYS)
    x = jnp.sum(x.reshape(*x.shape[:-1], -1, KEYS), axis=-2)
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x[..., 0]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def attention(
    usual: Callable[..., Array],
    config: ModelConfig,
    heads: tuple[Array, Array, Array],
    own: Int[Array, "b S"],
    slots: Int[Array, "b T"],
    sliding: Bool[Array, ""],
) -> Float[Array, "B S NH"]:
    """The attention of `attention.attend`.

    Args:
      usual: function of the other arguments and `config`, whose gradient is taken.
      config: shape of the model.
      heads: queries [B, S, N, H], keys [B, K, H, T] and values [B, K, T, H].
      own, slots: positions of queries and keys. Those of the keys rise.
      sliding: this layer has the sliding window.
    """
    query, key, value = heads
    batch, length, number, size = query.shape
    kv_heads = key.shape[1]
    group = number // kv_heads
    # Tokens of a tile: with the heads of a group, at most 16 queries, unless one token has more.
    tokens = max(QUERIES // group, 1)
    own = _padded(jnp.broadcast_to(own, (batch, length)), 1, tokens)
    query = _padded(query, 1, tokens)
    tiles = query.shape[1] // tokens
    query = query.reshape(batch, tiles, tokens, kv_heads, group, size)
    query = query.transpose(1, 0, 3, 2, 4, 5).reshape(tiles, batch, kv_heads, -1, size)
    last = jnp.repeat(own.reshape(batch, tiles, tokens).swapaxes(0, 1), group, axis=2)
    queries = query.shape[3]
    query = _padded(_padded(query, 3, QUERIES), 1, QUERIES)
    last = _padded(_padded(last, 2, QUERIES), 1, QUERIES)
    key = _padded(_padded(key, 3, KEYS), 0, QUERIES)
    value = _padded(_padded(value, 2, KEYS), 0, QUERIES)
    # Padding of the keys has a position that no query sees.
    missing = key.shape[3] - slots.shape[1]
    slots = jnp.pad(slots, ((0, 0), (0, missing)), constant_values=jnp.iinfo(slots.dtype).max)
    if len(slots) > 1:
        slots = _padded(slots, 0, QUERIES)

    def tile(part):
        query, last = part
        return _tile(config, query, key, value, last, slots=slots, sliding=sliding)

    y = jax.lax.map(tile, (query, last)) if tiles > 1 else tile((query[0], last[0]))[None]
    y = y[:, :batch, :, :queries].reshape(tiles, batch, kv_heads, tokens, group, size)
    return y.transpose(1, 0, 3, 2, 4, 5).reshape(batch, tiles * tokens, -1)[:, :length]


def _tile(config, query, key, value, last, *, slots, sliding) -> Float[Array, "B K Q H"]:
    """Attention of a tile of queries [B, K, Q, H] at positions `last` [B, Q]."""
    dtype = query.dtype
    visible = slots[:, None] <= last[:, :, None]
    if config.sliding_layers:
        near = slots[:, None] > last[:, :, None] - config.sliding_window
        visible &= near | ~sliding
    visible = visible[:, None]
    # The query is divided, and not the scores: XLA multiplies by the inverse, and may join that
    # with the difference from the maximum to one rounding.
    root = jnp.sqrt(jnp.asarray(config.query_pre_attn_scalar or query.shape[-1], dtype))
    scores = products.einsum("bkqh,bkht->bkqt", query / root, key)
    scores = jnp.where(visible, scores, jnp.finfo(dtype).min)
    top = jnp.max(scores, axis=-1, keepdims=True)
    mass = jnp.where(visible, jnp.exp(scores - top), 0)
    mixed = products.einsum("bkqt,bkth->bkqh", mass, value)
    # Queries of padding see nothing, and have no total.
    return mixed / jnp.maximum(total(mass), jnp.finfo(dtype).tiny)[..., None]


def _attention_forward(usual, config, *given):
    return attention(usual, config, *given), given


def _attention_backward(usual, config, given, slope):
    heads, *rest = given
    _, pulled = jax.vjp(lambda heads: usual(heads, *rest, config), heads)
    return *pulled(slope), None, None, None


attention.defvjp(_attention_forward, _attention_backward)


def tempered(logits: Float[Array, "N V"], temperature: Float[Array, "N"]) -> Float[Array, "N V"]:
    """Logits divided by the temperature of each row.

    XLA multiplies by the inverse if it knows the temperature, so that is written out. Without the
    maximum, which changes nothing, the product and a later sum may have one rounding together.
    """
    scaled = logits * (1 / temperature)[:, None]
    return jnp.maximum(scaled, jnp.finfo(scaled.dtype).min)


def log_prob(logits: Float[Array, "N V"], targets: Int[Array, "N"]) -> Float[Array, "N"]:
    """Log-probs of the targets under the softmax of each row."""

    number = len(targets)
    logits, targets = _padded(logits, 0, ROWS), _padded(targets, 0, ROWS)
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    own = jnp.take_along_axis(shifted, targets[:, None], axis=-1)[:, 0]
    return (own - jnp.log(total(jnp.exp(shifted))))[:number]


def logits(
    hidden: Float[Array, "... D"], unembedding: Float[Array, "V D"], softcap: float | None
) -> Float[Array, "... V"]:
    """Logits of hidden states, as `Model.to_logits`."""
    capped = by_rows(lambda rows: products.matmul(rows, unembedding.T), hidden)
    return capped if softcap is None else softcap * jnp.tanh(capped / softcap)


def score(
    hidden: Float[Array, "N D"],
    unembedding: Float[Array, "V D"],
    targets: Int[Array, "N"],
    temperature: Float[Array, "N"],
    softcap: float | None,
) -> Float[Array, "N"]:
    """Log-probs of targets from hidden states, `ROWS` of them at a time; without gradient.

    Args:
      hidden: states that the targets are predicted from.
      unembedding: matrix of the vocabulary.
      targets: ids.
      temperature: of each target.
      softcap: bound of the logits, if the model has one.
    """
    number = len(hidden)
    hidden, unembedding = jax.lax.stop_gradient((hidden, unembedding))
    parts = [
        _padded(each, 0, ROWS).reshape(-1, ROWS, *each.shape[1:])
        for each in (hidden, targets, temperature)
    ]

    def of_tile(part):
        hidden, targets, temperature = part
        # Tokens of padding have the temperature 0.
        temperature = jnp.where(temperature > 0, temperature, 1)
        return log_prob(tempered(logits(hidden, unembedding, softcap), temperature), targets)

    return jax.lax.map(of_tile, tuple(parts)).reshape(-1)[:number]


def _padded(x: Array, axis: int, multiple: int) -> Array:
    missing = -x.shape[axis] % multiple
    widths = [(0, missing if each == axis else 0) for each in range(x.ndim)]
    return jnp.pad(x, widths) if missing else x
