"""Sums over the vocabulary in plain XLA: tiles of logits that are never stored.

Vocabulary tiles are the outer loop and token tiles the inner one, so a tile of the unembedding is
read once. Tokens off the mask are skipped: the other tokens are moved to the front once. The inner
loop runs over the tiles that they fill.
"""

from functools import partial

import jax
import jax.numpy as jnp

from rlvr_jax.kernels import algebra, tiles
from rlvr_jax.kernels.plan import Plan, Policy, Tiles, Tokens, by_platform, is_at_once


def sums(plan: Plan, policy: Policy, tokens: Tokens) -> algebra.Sums:
    """As `dispatch.sums`; tokens that are not active keep their empty sums."""
    size, vocabulary_size = policy.hidden.shape[0], policy.unembedding.shape[0]
    if not is_at_once(size, vocabulary_size):
        return by_platform(partial(_tiled_sums, plan), policy, tokens)
    hidden, unembedding = (x.astype(plan.dtype) for x in (policy.hidden, policy.unembedding))
    empty = algebra.start(plan.needs, size, plan.dtype, tokens.second_ratio)
    return _update(plan, empty, (hidden, tiles.Entries(unembedding), policy.bias), tokens, 0)


def _tiled_sums(plan: Plan, sizes: Tiles, policy: Policy, tokens: Tokens) -> algebra.Sums:
    hidden, unembedding, bias = policy
    dtype = tiles.working_dtype(plan, hidden, unembedding)
    tile = min(sizes.forward[0], -(-hidden.shape[0] // 8) * 8)
    rows = tiles.active_first(tokens.active, hidden.shape[0], tile)
    hidden = tiles.take(rows, hidden.astype(dtype))
    tokens = tiles.take_tokens(rows, tokens)
    view = tiles.viewed(unembedding, sizes.platform)

    def over_tile(sums, first, size):
        entries = tiles.entries_of(view, first, size, dtype)
        bias_tile = tiles.tile_of(bias, first, size)

        def over_tokens(index, sums):
            h, part, known = tiles.tile_of((hidden, sums, tokens), index * tile, tile)
            part = _update(plan, part, (h, entries, bias_tile), known, first)
            return tiles.write(sums, part, index * tile)

        return tiles.fold_tokens(over_tokens, sums, rows)

    empty = algebra.start(plan.needs, rows.num_rows, plan.dtype, tokens.second_ratio)
    full = tiles.fold_vocabulary(over_tile, empty, unembedding.shape[0], sizes.forward[1])
    return tiles.put_back(rows, full)


def _update(plan, sums, operands, tokens, first):
    """`sums` with the entries of a tile of operands (hidden, unembedding, bias) added."""
    logits, _ = tiles.logits_of(plan, *operands, tokens.inverse_temperature)
    if sums.max_id is not None:
        # The largest logit is looked for by equality: nobody may compute it with another rounding.
        logits = jax.lax.optimization_barrier(logits)
    target = _pick(logits, tokens.targets - jnp.asarray(first, jnp.int32))
    return algebra.update(sums, logits, target, first)


def _pick(logits, column):
    """logits[n, column[n]], 0 where the column lies outside; a gather costs a CPU no pass."""
    inside = (column >= 0) & (column < logits.shape[1])
    column = jnp.where(inside, column, 0)[:, None]
    return jnp.where(inside, jnp.take_along_axis(logits, column, axis=1)[:, 0], 0)
