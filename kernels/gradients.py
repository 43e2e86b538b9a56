"""The backward pass: gradients of tiles of logits, recomputed and contracted at once.

Vocabulary tiles are the outer loop. A tile of the unembedding's gradient is finished and written
once, in the unembedding's dtype. Only the gradient of the hidden states is accumulated over the
loop. Tokens whose cotangents are all 0 are skipped.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.kernels import algebra, nucleus, second_policy, tiles, top
from rlvr_jax.kernels.nucleus import Nucleus
from rlvr_jax.kernels.plan import OtherPolicy, Plan, Policy, Tiles, Tokens, by_platform, is_at_once


class Numbers(NamedTuple):
    """All numbers per token of the logit gradient; None where nothing was requested."""

    streaming: algebra.Coefficients
    nucleus: Nucleus | None = None
    other: second_policy.Coefficients | None = None
    topk: top.Coefficients | None = None


class _Known(NamedTuple):
    """What a tile reads of its tokens besides their hidden states."""

    tokens: Tokens
    numbers: Numbers
    other_hidden: jax.Array | None


def gradients(
    plan: Plan,
    policy: Policy,
    other: OtherPolicy | None,
    tokens: Tokens,
    numbers: Numbers,
    active: Bool[Array, "N"],
) -> Policy:
    """Gradients of the policy's arrays from the active tokens, the unembedding's in its dtype.

    Args:
      policy, other, tokens: of this device: its tokens and its part of the vocabulary, targets as
        indices into that.
      active: tokens with a cotangent; the numbers of the others are 0.
    """
    other, known = None if numbers.other is None else other, _Known(tokens, numbers, None)
    if is_at_once(*active.shape, policy.unembedding.shape[0]):
        return _at_once(plan, policy, other, known, active)
    return by_platform(partial(_tiled, plan), policy, other, known, active)


def _at_once(plan, policy, other, known: _Known, active):
    def cleared(hidden):
        """Hidden states without those of inactive tokens, which may be NaN."""
        return jnp.where(active[:, None], hidden.astype(plan.dtype), 0)

    hidden, unembedding = cleared(policy.hidden), policy.unembedding.astype(plan.dtype)
    entries, others = tiles.Entries(unembedding), None
    if other is not None:
        known = known._replace(other_hidden=cleared(other.hidden))
        others = tiles.Entries(other.unembedding.astype(plan.dtype))
    gradient = _logit_gradient(plan, hidden, entries, policy.bias, others, known, first=0)
    dhidden = tiles.product(plan, gradient, unembedding, (1, 0))
    dunembedding = tiles.product(plan, gradient, hidden, (0, 0)).astype(policy.unembedding.dtype)
    return Policy(dhidden, dunembedding, None if policy.bias is None else gradient.sum(axis=0))


def _tiled(plan, sizes: Tiles, policy, other, known: _Known, active):
    hidden, unembedding, bias = policy
    dtype = tiles.working_dtype(plan, hidden, unembedding)
    tile = min(sizes.backward[0], -(-active.shape[0] // 8) * 8)
    rows = tiles.active_first(active, active.shape[0], tile)
    tokens, numbers, _ = known
    known = _Known(tiles.take_tokens(rows, tokens), tiles.take(rows, numbers), None)
    view, other_view, other_dtype = tiles.viewed(unembedding, sizes.platform), None, None
    if other is not None:
        other_dtype = tiles.working_dtype(plan, *other)
        other_hidden = tiles.take(rows, other.hidden.astype(other_dtype))
        known = known._replace(other_hidden=other_hidden)
        other_view = tiles.viewed(other.unembedding, sizes.platform)
    hidden = tiles.take(rows, hidden.astype(dtype))
    # With these, the gradient of a tile is summed as [D, v].
    transposed = tiles.transposed(hidden) if tiles.need_columns(view, dtype) else None

    def over_tile(carry, first, size):
        dhidden, dview, dbias = carry
        entries, others = tiles.entries_of(view, first, size, dtype), None
        bias_tile = tiles.tile_of(bias, first, size)
        if other is not None:
            others = tiles.entries_of(other_view, first, size, other_dtype)

        def over_tokens(index, carry):
            dhidden, dentries, dbias_tile = carry
            h, own, dh = tiles.tile_of((hidden, known, dhidden), index * tile, tile)
            gradient = _logit_gradient(plan, h, entries, bias_tile, others, own, first=first)
            if bias is not None:
                dbias_tile = dbias_tile + gradient.sum(axis=0)
            gradient = gradient.astype(dtype)
            dh = dh + tiles.product(plan, gradient, entries.rows, (1, 0))
            if transposed is None:
                dentries = dentries + tiles.product(plan, gradient, h, (0, 0))
            else:
                columns = jax.lax.dynamic_slice_in_dim(transposed, index * tile, tile, axis=1)
                dentries = dentries + tiles.product(plan, columns, gradient, (1, 0))
            return tiles.write(dhidden, dh, index * tile), dentries, dbias_tile

        like = entries.rows if transposed is None else entries.columns
        empty = jax.tree.map(lambda x: jnp.zeros(x.shape, plan.dtype), (like, bias_tile))
        dhidden, dentries, dbias_tile = tiles.fold_tokens(over_tokens, (dhidden, *empty), rows)
        if transposed is not None:
            dentries = dentries.T
        done = tiles.narrowed(dentries, view), dbias_tile
        return dhidden, *tiles.write((dview, dbias), done, first)

    dhidden = jnp.zeros((rows.num_rows, hidden.shape[1]), plan.dtype)
    dbias = None if bias is None else jnp.zeros(bias.shape, plan.dtype)
    carry = dhidden, jnp.zeros_like(view), dbias
    dhidden, dview, dbias = tiles.fold_vocabulary(
        over_tile, carry, unembedding.shape[0], sizes.backward[1]
    )
    if dview.dtype != unembedding.dtype:
        dview = jax.lax.bitcast_convert_type(dview, unembedding.dtype)
    if plan.vocabulary_axis is None:
        dhidden = dhidden.astype(policy.hidden.dtype)  # nothing will be added to it
    return Policy(tiles.put_back(rows, dhidden), dview, dbias)


def _logit_gradient(plan, hidden, entries, bias, others, known: _Known, *, first):
    """dL/d(h·w + bias) of a tile [n, v] whose first entry is `first`."""
    tokens, numbers, other_hidden = known
    scale = tokens.inverse_temperature
    logits, slope = tiles.logits_of(plan, hidden, entries, bias, scale)
    column = tokens.targets - jnp.asarray(first, jnp.int32)
    gradient = algebra.logit_gradient(numbers.streaming, logits, None, column)
    if numbers.topk is not None:
        gradient = top.add_gradient(gradient, numbers.topk, first)
    logp = logits - numbers.streaming.logsumexp[:, None]
    logp = jnp.clip(logp, algebra.LOWEST, 0)
    if numbers.nucleus is not None:
        gradient = gradient + nucleus.logit_gradient(numbers.nucleus, logp)
    if numbers.other is not None:
        other_logits, _ = tiles.logits_of(plan, other_hidden, others, bias, scale)
        gradient = gradient + second_policy.logit_gradient(numbers.other, logp, other_logits)
    return gradient if slope is None else gradient * slope
