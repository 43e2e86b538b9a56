"""The mathematics of softmax statistics over a vocabulary that is seen tile by tile.

Every implementation of `token_stats` uses these formulas; they differ in loops and loads only.
With z the logits of a token, m the largest logit seen so far and d = z - m ≤ 0, five sums carry
everything there is to know:

    s0 = Σ e^d    s1 = Σ d e^d    s2 = Σ e^2d    s3 = Σ d e^2d    and z_y, the target's logit

No sum mixes signs, so nothing cancels. When a larger logit m' appears, with δ = m - m', a = e^δ:

    s0' = a s0    s1' = a (s1 + δ s0)    s2' = a² s2    s3' = a² (s3 + δ s2)

At the end p = e^d / s0 and l = log p = d - log s0 give

    logp = z_y - m - log s0    logsumexp = m + log s0    entropy H = log s0 - s1 / s0
    p_squared S = s2 / s0²     p_squared_logp R = (s3 - s2 log s0) / s0²

Backward, with g_x the cotangent of statistic x, one expression serves all statistics:

    dL/dz_v = c·1[v = y] + p_v (α + β l_v + p_v (γ + δ l_v))

    c = g_logp    β = -g_H    γ = 2 g_S + g_R    δ = 2 g_R
    α = g_logsumexp - g_logp - g_H H - 2 g_S S - g_R (2 R + S)

The numbers c, α, β, γ, δ and logsumexp are one per token, so a tile needs only its logits and these
six. What nobody asked for is None and costs nothing.
"""

from collections.abc import Collection
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.types import TokenStats, replace

__all__ = [
    "Coefficients",
    "Sums",
    "coefficients",
    "finish",
    "logit_gradient",
    "logits_and_slope",
    "merge",
    "start",
    "update",
]

# e^LOWEST is 0 in float32 and float64: a clamp there changes no sum, and 0 · LOWEST is 0, not NaN.
LOWEST = -1e4


class Sums(NamedTuple):
    """Sums over the vocabulary entries seen so far; all [n], None where not needed.

    Fields:
      largest: m, the largest logit.
      s0, s1, s2, s3: Σ e^d, Σ d e^d, Σ e^2d, Σ d e^2d with d = z - m.
      target: the logit of the target, 0 as long as it was not seen.
    """

    largest: Float[Array, "n"]
    s0: Float[Array, "n"]
    s1: Float[Array, "n"] | None = None
    s2: Float[Array, "n"] | None = None
    s3: Float[Array, "n"] | None = None
    target: Float[Array, "n"] | None = None


class Coefficients(NamedTuple):
    """The numbers of a token in its logit gradient (see the module); [n], None where zero.

    Fields:
      logsumexp: log Σ e^z, to get log p from a recomputed logit.
      c, alpha, beta, gamma, delta: factors of 1[v = y], p, p log p, p² and p² log p.
    """

    logsumexp: Float[Array, "n"]
    alpha: Float[Array, "n"]
    c: Float[Array, "n"] | None = None
    beta: Float[Array, "n"] | None = None
    gamma: Float[Array, "n"] | None = None
    delta: Float[Array, "n"] | None = None


def logits_and_slope(
    products: Float[Array, "n v"],
    bias: Float[Array, "v"] | None,
    softcap: float | None,
    inverse_temperature: Float[Array, "n"] | None,
) -> tuple[Float[Array, "n v"], Float[Array, "n v"] | None]:
    """Turns products h·w into the logits z of the policy.

        x = h·w + bias,   z = cap tanh(x / cap) / T

    A bias of -inf takes its entry out of the vocabulary, capped or not.

    Returns:
      z, and 1 - tanh²(x / cap), the slope of the cap (None without one). The full derivative is
      dz/dx = slope / T.
    """
    logits, slope = products, None
    if bias is not None:
        logits = logits + bias.astype(logits.dtype)[None, :]
    if softcap is not None:
        bent = jnp.tanh(logits / softcap)
        slope = 1 - bent * bent
        logits = jnp.where(logits == -jnp.inf, logits, softcap * bent)
    if inverse_temperature is not None:
        logits = logits * inverse_temperature[:, None]
    return logits, slope


def start(needs: Collection[str], size: int, dtype) -> Sums:
    """Sums of `size` tokens over no vocabulary entry, with the fields that `needs` asks for."""

    def zeros(*users):
        return jnp.zeros(size, dtype) if any(user in needs for user in users) else None

    return Sums(
        # The lowest finite number, not -inf: differences of two of them are numbers.
        largest=jnp.full(size, jnp.finfo(dtype).min, dtype),
        s0=jnp.zeros(size, dtype),
        s1=zeros("entropy"),
        s2=zeros("p_squared", "p_squared_logp"),
        s3=zeros("p_squared_logp"),
        target=zeros("logp"),
    )


def update(sums: Sums, logits: Float[Array, "n v"], target: Float[Array, "n"]) -> Sums:
    """Adds a tile of the vocabulary.

    Args:
      sums: of the entries before.
      logits: of the tile's entries; -inf takes an entry out.
      target: the target's logit, 0 where the target is not in the tile.
    """
    largest = jnp.maximum(sums.largest, jnp.max(logits, axis=-1))
    # Above 0 only where the compiler recomputed a logit with another rounding.
    shift = jnp.clip(logits - largest[:, None], LOWEST, 0)
    exp = jnp.exp(shift)
    tile = Sums(largest, jnp.sum(exp, axis=-1))
    if sums.s1 is not None:
        tile = tile._replace(s1=jnp.sum(exp * shift, axis=-1))
    if sums.s2 is not None:
        tile = tile._replace(s2=jnp.sum(exp * exp, axis=-1))
    if sums.s3 is not None:
        tile = tile._replace(s3=jnp.sum(exp * exp * shift, axis=-1))
    if sums.target is not None:
        tile = tile._replace(target=target)
    return _add(_relative_to(largest, sums), tile)


def merge(left: Sums, right: Sums) -> Sums:
    """Sums over the entries of both; the two vocabularies must not overlap."""
    largest = jnp.maximum(left.largest, right.largest)
    return _add(_relative_to(largest, left), _relative_to(largest, right))


def finish(sums: Sums, vocabulary_size: int) -> TokenStats:
    """The statistics that the sums determine, kept inside their mathematical bounds.

    Rounding can carry a statistic an ulp across its bound (a positive log-prob, an entropy below
    0); clamps undo that and nothing else.
    """
    log_s0 = jnp.log(sums.s0)
    stats = TokenStats(logsumexp=sums.largest + log_s0)
    if sums.target is not None:
        stats = replace(stats, logp=jnp.minimum(sums.target - sums.largest - log_s0, 0))
    if sums.s1 is not None:
        highest = jnp.log(jnp.asarray(vocabulary_size, sums.s0.dtype))
        stats = replace(stats, entropy=jnp.clip(log_s0 - sums.s1 / sums.s0, 0, highest))
    if sums.s2 is not None:
        p_squared = sums.s2 / sums.s0 / sums.s0
        stats = replace(stats, p_squared=jnp.clip(p_squared, 1 / vocabulary_size, 1))
    if sums.s3 is not None:
        mixed = (sums.s3 - sums.s2 * log_s0) / sums.s0 / sums.s0
        stats = replace(stats, p_squared_logp=jnp.minimum(mixed, 0))
    return stats


def coefficients(
    stats: TokenStats,
    cotangents: TokenStats,
    inverse_temperature: Float[Array, "n"] | None,
) -> Coefficients:
    """The six numbers per token of the backward pass.

    Args:
      stats: what `finish` gave.
      cotangents: dL/d(statistic); None for statistics that nobody asked for.
      inverse_temperature: [n], 1 / T; folded in: dz/dx has this factor.
    """
    alpha, c, beta, gamma, delta = jnp.zeros_like(stats.logsumexp), None, None, None, None
    if cotangents.logsumexp is not None:
        alpha = alpha + cotangents.logsumexp
    if cotangents.logp is not None:
        c = cotangents.logp
        alpha = alpha - c
    if cotangents.entropy is not None:
        beta = -cotangents.entropy
        alpha = alpha + beta * stats.entropy
    if cotangents.p_squared is not None:
        gamma = 2 * cotangents.p_squared
        alpha = alpha - gamma * stats.p_squared
    if cotangents.p_squared_logp is not None:
        mixed = cotangents.p_squared_logp
        delta = 2 * mixed
        gamma = mixed if gamma is None else gamma + mixed
        alpha = alpha - delta * stats.p_squared_logp - mixed * stats.p_squared
    factors = (alpha, c, beta, gamma, delta)
    if inverse_temperature is not None:
        factors = jax.tree.map(lambda factor: factor * inverse_temperature, factors)
    return Coefficients(stats.logsumexp, *factors)


def logit_gradient(
    numbers: Coefficients,
    logits: Float[Array, "n v"],
    slope: Float[Array, "n v"] | None,
    column: Int[Array, "n"],
) -> Float[Array, "n v"]:
    """dL/dx of a tile, x = h·w + bias being what `logits_and_slope` was given.

    Args:
      numbers: from `coefficients`.
      logits, slope: from `logits_and_slope`.
      column: the target as an index into the tile; outside [0, v) if it lies elsewhere.
    """
    logp = jnp.clip(logits - numbers.logsumexp[:, None], LOWEST, 0)
    p = jnp.exp(logp)
    inner = _line(numbers.alpha, numbers.beta, logp)
    if numbers.gamma is not None:
        inner = inner + p * _line(numbers.gamma, numbers.delta, logp)
    gradient = p * inner
    if numbers.c is not None:
        entries = jnp.arange(logits.shape[1], dtype=column.dtype)
        is_target = column[:, None] == entries[None, :]
        gradient = gradient + jnp.where(is_target, numbers.c[:, None], 0)
    return gradient if slope is None else gradient * slope


def _line(offset, factor, logp):
    """offset + factor · logp, token by token; without a factor the offset alone."""
    return offset[:, None] if factor is None else offset[:, None] + factor[:, None] * logp


def _relative_to(largest, sums: Sums) -> Sums:
    """The same sums, measured from a logit that is at least their own largest one."""
    shift = jnp.clip(sums.largest - largest, LOWEST, 0)
    scale = jnp.exp(shift)
    s1, s2, s3 = sums.s1, sums.s2, sums.s3
    return Sums(
        largest=largest,
        s0=scale * sums.s0,
        s1=None if s1 is None else scale * (s1 + shift * sums.s0),
        s2=None if s2 is None else scale * scale * s2,
        s3=None if s3 is None else scale * scale * (s3 + shift * s2),
        target=sums.target,
    )


def _add(left: Sums, right: Sums) -> Sums:
    """Adds sums that are measured from the same logit."""
    total = jax.tree.map(jnp.add, left, right)
    return total._replace(largest=right.largest)
