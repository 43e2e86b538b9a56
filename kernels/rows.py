"""Statistics that need a token's whole row of logits, computed on chunks of tokens.

A chunk is so many tokens that their logits are small (64 MiB on CPU). In it the largest logit
and the normalizer are known before any sum starts, so all these statistics cost one sweep. Chunks
have only active tokens, and those of the nucleus only tokens in `nucleus_mask`.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.kernels import nucleus, second_policy, tiles, top
from rlvr_jax.kernels.algebra import LOWEST
from rlvr_jax.kernels.nucleus import Nucleus
from rlvr_jax.kernels.plan import (
    OtherPolicy,
    Plan,
    Policy,
    Statistics,
    Tiles,
    Tokens,
    by_platform,
    is_at_once,
)


class RowStats(NamedTuple):
    """Statistics of rows, [n] each, and residuals of the backward pass; None if not needed.

    Fields:
      stats: the statistics of `ROWS` that are needed, and logsumexp.
      nucleus: of the tokens in `nucleus_mask`.
      other_logsumexp: of the second policy's logits.
      pull: Σ p log(p/m), for `js`.
    """

    stats: Statistics
    nucleus: Nucleus | None = None
    other_logsumexp: Float[Array, "n"] | None = None
    pull: Float[Array, "n"] | None = None


class _Wave(NamedTuple):
    """Inputs of a chunk per token."""

    hidden: Float[Array, "n D"]
    other_hidden: Float[Array, "n E"] | None
    inverse_temperature: Float[Array, "n"] | None


def sweep(
    plan: Plan,
    policy: Policy,
    other: OtherPolicy | None,
    tokens: Tokens,
    active: Bool[Array, "N"],
    needs: tuple[str, ...],
) -> RowStats:
    """The statistics `needs` of `ROWS` for the active tokens, 0 for the others.

    Args:
      policy, other, tokens: of this device: its tokens and its part of the vocabulary.
    """
    divergent = any(need in second_policy.DIVERGENCES for need in needs)
    other = other if divergent else None
    plan = dataclasses.replace(plan, needs=needs)
    operands = policy, other, tokens.inverse_temperature, active
    if is_at_once(*active.shape, policy.unembedding.shape[0]):
        return _at_once(plan, *operands)
    return by_platform(partial(_in_waves, plan), *operands)


def _at_once(plan, policy, other, inverse_temperature, active):
    wave = _Wave(policy.hidden, None if other is None else other.hidden, inverse_temperature)

    def logits(hidden, unembedding):
        entries = tiles.Entries(unembedding.astype(plan.dtype))
        hidden = hidden.astype(plan.dtype)
        return tiles.logits_of(plan, hidden, entries, policy.bias, inverse_temperature)[0]

    z = logits(wave.hidden, policy.unembedding)
    k = None if other is None else logits(wave.other_hidden, other.unembedding)
    stats = _row_stats(plan, z, k)
    return jax.tree.map(lambda x: jnp.where(_rows(active, x), x, 0), stats)


def _in_waves(plan, sizes: Tiles, policy, other, inverse_temperature, active):
    vocabulary_size = policy.unembedding.shape[0]
    budget, width = sizes.wave
    size = max(8, budget // vocabulary_size // 8 * 8)
    size = min(size, -(-active.shape[0] // 8) * 8)
    rows = tiles.active_first(active, active.shape[0], size)
    if plan.token_axes and plan.vocabulary_axis:
        # Waves reduce over devices: all of them go round equally often.
        rows = rows._replace(num_tiles=jax.lax.pmax(rows.num_tiles, plan.token_axes))
    hidden = policy.hidden, None if other is None else other.hidden
    hidden = tiles.take(rows, hidden)
    wanted = _Wave(*hidden, tiles.take(rows, inverse_temperature, fill=1))

    def logits(hidden, unembedding, scale):
        """[size, V] logits; the matrix is read in tiles, which suits a CPU."""
        dtype = tiles.working_dtype(plan, hidden, unembedding)
        view, hidden = tiles.viewed(unembedding, sizes.platform), hidden.astype(dtype)

        def over_tile(z, first, columns):
            entries = tiles.entries_of(view, first, columns, dtype)
            bias = tiles.tile_of(policy.bias, first, columns)
            part, _ = tiles.logits_of(plan, hidden, entries, bias, scale)
            return jax.lax.dynamic_update_slice_in_dim(z, part, first, axis=1)

        empty = jnp.zeros((size, vocabulary_size), plan.dtype)
        return tiles.fold_vocabulary(over_tile, empty, vocabulary_size, width)

    def wave(part):
        z = logits(part.hidden, policy.unembedding, part.inverse_temperature)
        if other is None:
            return _row_stats(plan, z, None, sizes.search)
        scale = part.inverse_temperature
        other_z = logits(part.other_hidden, other.unembedding, scale)
        return _row_stats(plan, z, other_z, sizes.search)

    def step(index, stats):
        part = tiles.tile_of(wanted, index * size, size)
        return tiles.write(stats, wave(part), index * size)

    shapes = jax.eval_shape(wave, tiles.tile_of(wanted, 0, size))
    empty = jax.tree.map(lambda s: jnp.zeros((rows.num_rows, *s.shape[1:]), s.dtype), shapes)
    return tiles.put_back(rows, tiles.fold_tokens(step, empty, rows))


def _row_stats(plan, logits, other_logits, search=None) -> RowStats:
    """All statistics of a chunk from its logits, [n, V] or this device's part of them."""
    total = partial(_total, plan.vocabulary_axis)
    largest, shift, exp, s0 = _normalizer(logits, total)
    log_s0 = jnp.log(s0)
    stats = {"logsumexp": largest + log_s0}
    found, other_logsumexp, pull = None, None, None
    if "min_p_mass" in plan.needs:
        mass = total(jnp.where(exp >= plan.min_p, exp, 0)) / s0
        stats["min_p_mass"] = jnp.minimum(mass, 1)
    if "topk_logp" in plan.needs or "topk_ids" in plan.needs:
        values, ids = top.largest(logits, plan.top_k, plan.vocabulary_axis)
        stats["topk_logp"] = jnp.minimum(values - stats["logsumexp"][:, None], 0)
        stats["topk_ids"] = ids
    if "nucleus_entropy" in plan.needs:
        how = {"group": search, "include_crossing": plan.include_crossing}
        found = nucleus.entropy(exp, shift, s0, plan.top_p, total, **how)
        stats["nucleus_entropy"] = found.entropy
    if other_logits is not None:
        other_largest, other_shift, _, other_s0 = _normalizer(other_logits, total)
        other_log_s0 = jnp.log(other_s0)
        logp = jnp.maximum(shift - log_s0[:, None], LOWEST)
        logq = jnp.maximum(other_shift - other_log_s0[:, None], LOWEST)
        measured, pull = second_policy.divergences(plan.needs, logp, logq, total)
        stats |= measured
        other_logsumexp = other_largest + other_log_s0
    return RowStats(stats, found, other_logsumexp, pull)


def _normalizer(logits, total: Callable):
    """The largest logit m, d = z - m (clipped), e^d and Σ e^d."""
    largest = total(logits, jnp.max)
    shift = jnp.clip(logits - largest[:, None], LOWEST, 0)
    exp = jnp.exp(shift)
    return largest, shift, exp, total(exp)


def _total(axis_name, values, reduce=jnp.sum):
    """Sum (or maximum) over the vocabulary, of all devices along the axis if there is one."""
    local = reduce(values, axis=1)
    if axis_name is None:
        return local
    over_devices = jax.lax.psum if reduce is jnp.sum else jax.lax.pmax
    return over_devices(local, axis_name)


def _rows(active, values):
    """`active` with as many axes as `values`."""
    return active.reshape(-1, *(1,) * (values.ndim - 1))
