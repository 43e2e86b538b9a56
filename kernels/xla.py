"""Token statistics in plain XLA: tiles of logits that are recomputed backward and never stored.

Vocabulary tiles are the outer loop and token tiles the inner one. So a tile of the unembedding is
read once, its gradient is finished and written once, in the unembedding's dtype, and the only array
that is accumulated over the whole loop is the gradient of the hidden states. The vocabulary's
remainder is one static slice that goes through the same update: the unembedding is never copied.

Tokens that cannot matter are not visited: the others are moved to the front once, and the inner
loop runs over as many tiles as they fill (forward: tokens on the mask; backward: tokens with a
cotangent that is not 0).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.kernels import algebra
from rlvr_jax.types import TokenStats, replace

__all__ = ["statistics"]

# A float32 tile of 512 x 2048 logits is 4 MiB and stays in a CPU's cache; wider ones lose.
TOKEN_TILE = 512
VOCABULARY_TILE = 2048
# Up to so many logits (32 MiB in float32) a vocabulary of one tile is done at once. The choice of
# the vocabulary's tiles depends on V alone, so that a token's bits do not depend on N.
LOGITS_AT_ONCE = 8 * TOKEN_TILE * VOCABULARY_TILE


class _Plan(NamedTuple):
    """What is fixed when a call is traced: what to compute, how, and in tiles of which size."""

    needs: tuple[str, ...]
    softcap: float | None
    dtype: Any
    at_once: bool
    token_tile: int
    vocabulary_tile: int


def statistics(
    hidden: Float[Array, "N D"],
    unembedding: Float[Array, "V D"],
    bias: Float[Array, "V"] | None,
    targets: Int[Array, "N"],
    mask: Bool[Array, "N"] | None,
    temperature: Float[Array, "N"] | None,
    *,
    needs: tuple[str, ...],
    softcap: float | None,
    dtype,
) -> TokenStats:
    """Computes the statistics in `needs` with logits and sums in `dtype`; reverse mode only.

    Arguments are those of `token_stats` after its checks; a temperature of None is 1.
    """
    inverse_temperature = None if temperature is None else 1 / temperature
    tokens, vocabulary_size = hidden.shape[0], unembedding.shape[0]
    is_small = vocabulary_size <= VOCABULARY_TILE and tokens * vocabulary_size <= LOGITS_AT_ONCE
    plan = _Plan(
        needs=needs,
        softcap=softcap,
        dtype=dtype,
        at_once=is_small or tokens == 0,
        token_tile=min(TOKEN_TILE, -(-tokens // 8) * 8),
        vocabulary_tile=VOCABULARY_TILE,
    )
    inputs = hidden, unembedding, bias
    return _statistics(plan, inputs, targets, mask, inverse_temperature)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _statistics(plan, inputs, targets, mask, inverse_temperature):
    return _forward(plan, inputs, targets, mask, inverse_temperature)[0]


def _forward(plan, inputs, targets, mask, inverse_temperature):
    hidden, unembedding, _ = inputs
    tokens, vocabulary_size = hidden.shape[0], unembedding.shape[0]
    if plan.at_once:
        logits, _ = _logits(plan, inputs, inverse_temperature)
        sums = algebra.start(plan.needs, tokens, plan.dtype)
        sums = algebra.update(sums, logits, _pick(logits, targets))
        stats = algebra.finish(sums, vocabulary_size)
    else:
        active = jnp.ones(tokens, bool) if mask is None else mask
        sums = _tiled_sums(plan, inputs, targets, active, inverse_temperature)
        stats = algebra.finish(sums, vocabulary_size)
        # Tokens that were not visited have log 0 and 0 / 0 here, which must not reach the backward.
        stats = jax.tree.map(lambda value: jnp.where(active, value, 0), stats)
    saved = stats, inputs, targets, inverse_temperature
    if "logp" in plan.needs:
        inside = (targets >= 0) & (targets < vocabulary_size)
        stats = replace(stats, logp=jnp.where(inside, stats.logp, jnp.nan))
    return TokenStats(**{need: getattr(stats, need) for need in plan.needs}), saved


def _backward(plan, saved, cotangents):
    stats, inputs, targets, inverse_temperature = saved
    hidden, unembedding, bias = inputs
    if cotangents.logp is not None:
        inside = (targets >= 0) & (targets < unembedding.shape[0])
        cotangents = replace(cotangents, logp=jnp.where(inside, cotangents.logp, 0))
    numbers = algebra.coefficients(stats, cotangents, inverse_temperature)
    if plan.at_once:
        logits, slope = _logits(plan, inputs, inverse_temperature)
        gradient = algebra.logit_gradient(numbers, logits, slope, targets)
        dhidden = gradient @ unembedding.astype(plan.dtype)
        dunembedding = gradient.T @ hidden.astype(plan.dtype)
        dbias = None if bias is None else jnp.sum(gradient, axis=0)
    else:
        used = [cotangent != 0 for cotangent in jax.tree.leaves(cotangents)]
        active = jnp.any(jnp.stack(used), axis=0)
        dhidden, dunembedding, dbias = _tiled_gradients(
            plan, inputs, targets, active, inverse_temperature, numbers
        )
    dinputs = (
        dhidden.astype(hidden.dtype),
        dunembedding.astype(unembedding.dtype),
        None if bias is None else dbias.astype(bias.dtype),
    )
    return dinputs, None, None, None


_statistics.defvjp(_forward, _backward)


def _tiled_sums(plan, inputs, targets, active, inverse_temperature):
    """Sums of the active tokens over the whole vocabulary; the others keep their empty sums."""
    hidden, unembedding, bias = inputs
    tile = plan.token_tile
    order, place, num_tiles = _active_first(active, tile)
    rows = jax.tree.map(partial(_take, order), (hidden, targets, inverse_temperature))

    def over_tile(sums, first, size):
        entries = _tile_of((unembedding, bias), first, size)

        def over_tokens(index, sums):
            h, y, scale = _tile_of(rows, index * tile, tile)
            logits, _ = _logits(plan, (h, *entries), scale)
            part = _tile_of(sums, index * tile, tile)
            part = algebra.update(part, logits, _pick(logits, y - first))
            return _write(sums, part, index * tile)

        return jax.lax.fori_loop(jnp.int32(0), num_tiles, over_tokens, sums)

    sums = algebra.start(plan.needs, order.shape[0], plan.dtype)
    sums = _over_vocabulary(plan, over_tile, sums, unembedding.shape[0])
    return jax.tree.map(partial(_take, place), sums)


def _tiled_gradients(plan, inputs, targets, active, inverse_temperature, numbers):
    """Gradients of hidden [N, D], unembedding [V, D] and bias [V] from the active tokens."""
    hidden, unembedding, bias = inputs
    tile = plan.token_tile
    order, place, num_tiles = _active_first(active, tile)
    rows = (hidden, targets, inverse_temperature, numbers)
    rows = jax.tree.map(partial(_take, order), rows)

    def over_tile(carry, first, size):
        dhidden, dentries = carry
        entries = _tile_of((unembedding, bias), first, size)

        def over_tokens(index, carry):
            dhidden, dtile = carry
            h, y, scale, part = _tile_of(rows, index * tile, tile)
            logits, slope = _logits(plan, (h, *entries), scale)
            gradient = algebra.logit_gradient(part, logits, slope, y - first)
            dh = _tile_of(dhidden, index * tile, tile) + gradient @ entries[0].astype(plan.dtype)
            added = (
                gradient.T @ h.astype(plan.dtype),
                None if bias is None else gradient.sum(axis=0),
            )
            return _write(dhidden, dh, index * tile), jax.tree.map(jnp.add, dtile, added)

        empty = jax.tree.map(lambda entry: jnp.zeros(entry.shape, plan.dtype), entries)
        dhidden, dtile = jax.lax.fori_loop(jnp.int32(0), num_tiles, over_tokens, (dhidden, empty))
        return dhidden, _write(dentries, dtile, first)

    dhidden = jnp.zeros((order.shape[0], hidden.shape[1]), plan.dtype)
    dentries = jax.tree.map(jnp.zeros_like, (unembedding, bias))
    dhidden, dentries = _over_vocabulary(plan, over_tile, (dhidden, dentries), unembedding.shape[0])
    return _take(place, dhidden), *dentries


def _logits(plan, inputs, inverse_temperature):
    """Logits and the slope of their cap, from products that are accumulated in the plan's dtype."""
    hidden, unembedding, bias = inputs
    if hidden.dtype != unembedding.dtype:
        hidden, unembedding = hidden.astype(plan.dtype), unembedding.astype(plan.dtype)
    products = jax.lax.dot_general(
        hidden, unembedding, (((1,), (1,)), ((), ())), preferred_element_type=plan.dtype
    )
    return algebra.logits_and_slope(products, bias, plan.softcap, inverse_temperature)


def _pick(logits, column):
    """logits[n, column[n]], 0 where the column lies outside; a gather costs a CPU no pass."""
    inside = (column >= 0) & (column < logits.shape[1])
    column = jnp.where(inside, column, 0)[:, None]
    return jnp.where(inside, jnp.take_along_axis(logits, column, axis=1)[:, 0], 0)


def _over_vocabulary(plan, step: Callable, carry, vocabulary_size: int):
    """Folds step(carry, first entry, number of entries) over tiles and the remainder."""
    tile = plan.vocabulary_tile
    num_tiles, remainder = divmod(vocabulary_size, tile)

    def whole_tile(index, carry):
        return step(carry, index * tile, tile)

    if num_tiles:
        carry = jax.lax.fori_loop(jnp.int32(0), jnp.int32(num_tiles), whole_tile, carry)
    if remainder:
        carry = step(carry, jnp.int32(num_tiles * tile), remainder)
    return carry


def _active_first(active: Bool[Array, "N"], tile: int):
    """Orders tokens so that the active ones come first.

    Returns:
      order: [M], the token in each row, M being N rounded up to tiles; N in the rows past the end.
      place: [N], the row of each token.
      num_tiles: how many tiles hold active tokens, a traced number.
    """
    tokens = active.shape[0]
    num_rows = -(-tokens // tile) * tile
    order = jnp.argsort(~active, stable=True).astype(jnp.int32)
    place = jnp.zeros(tokens, jnp.int32).at[order].set(jnp.arange(tokens, dtype=jnp.int32))
    order = jnp.pad(order, (0, num_rows - tokens), constant_values=tokens)
    num_tiles = (jnp.sum(active, dtype=jnp.int32) + tile - 1) // tile
    return order, place, num_tiles


def _take(rows, values):
    """values[rows], with zeros for rows past the end."""
    return values.at[rows].get(mode="fill", fill_value=0)


def _tile_of(tree, first, size: int):
    """Rows [first, first + size) of every array in the tree."""
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, first, size), tree)


def _write(tree, tile, first):
    """The tree with the tile's rows put at `first`, in the tree's dtypes."""
    return jax.tree.map(
        lambda x, t: jax.lax.dynamic_update_slice_in_dim(x, t.astype(x.dtype), first, axis=0),
        tree,
        tile,
    )
