"""Divergences from a second policy q over the whole vocabulary, and their gradients to the first.

With l = log p, k = log q and u = l - k, every divergence is a sum of terms that are not negative:

    KL(p‖q) = Σ p u - p + q        KL(q‖p) = Σ -q u - q + p
    JS = ½ Σ p log(p/m) + q log(q/m),   m = (p + q) / 2,   log(p/m) = log(1 + tanh(u/2))

As Σ p = Σ q = 1, the additions -p + q change only the rounding. Terms do not cancel, and an error
of the two normalizers has no effect. Gradients, with A = Σ p log(p/m):

    dKL(p‖q)/dz_v = p_v (u_v - KL)    dKL(q‖p)/dz_v = p_v - q_v
    dJS/dz_v = ½ p_v (log(p_v/m_v) - A)
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.kernels.algebra import LOWEST
from rlvr_jax.kernels.plan import Statistics

DIVERGENCES = frozenset({"kl", "reverse_kl", "js"})


class Coefficients(NamedTuple):
    """Numbers per token of the backward pass, [n]; None where zero.

    Fields:
      logsumexp: of the second policy's logits.
      alpha, kl, reverse_kl, js: factors of p, p u, -q and p log(p/m).
    """

    logsumexp: Float[Array, "n"]
    alpha: Float[Array, "n"]
    kl: Float[Array, "n"] | None = None
    reverse_kl: Float[Array, "n"] | None = None
    js: Float[Array, "n"] | None = None


def divergences(
    needs: tuple[str, ...],
    logp: Float[Array, "n V"],
    logq: Float[Array, "n V"],
    total: Callable[[Array], Array],
) -> tuple[Statistics, Float[Array, "n"] | None]:
    """The divergences in `needs`, and A if `js` is one of them.

    Args:
      logp, logq: log-probs, LOWEST for entries that are not in the vocabulary.
      total: sums [n, V] over the vocabulary to [n], over all devices that hold a part of it.
    """
    stats, pull = {}, None
    if "kl" in needs:
        stats["kl"] = total(_relative_entropy(logp, logq))
    if "reverse_kl" in needs:
        stats["reverse_kl"] = total(_relative_entropy(logq, logp))
    if "js" in needs:
        above, below = _to_mixture(logp, logq), _to_mixture(logq, logp)
        js = total(jnp.exp(logp) * above + jnp.exp(logq) * below) / 2
        stats["js"] = jnp.clip(js, 0, jnp.log(jnp.asarray(2, js.dtype)))
        pull = total(jnp.exp(logp) * above)
    return stats, pull


def coefficients(
    stats: Statistics,
    pull: Float[Array, "n"] | None,
    logsumexp: Float[Array, "n"],
    cotangents: Statistics,
    inverse_temperature: Float[Array, "n"] | None,
) -> Coefficients:
    """The numbers per token of the backward pass.

    Args:
      stats, pull: results of `divergences`.
      logsumexp: of the second policy's logits.
    """
    alpha, factors = jnp.zeros_like(logsumexp), {}
    if "kl" in cotangents:
        factors["kl"] = cotangents["kl"]
        alpha = alpha - cotangents["kl"] * stats["kl"]
    if "reverse_kl" in cotangents:
        factors["reverse_kl"] = cotangents["reverse_kl"]
        alpha = alpha + cotangents["reverse_kl"]
    if "js" in cotangents:
        factors["js"] = cotangents["js"] / 2
        alpha = alpha - factors["js"] * pull
    factors["alpha"] = alpha
    if inverse_temperature is not None:
        factors = {name: value * inverse_temperature for name, value in factors.items()}
    return Coefficients(logsumexp, **factors)


def logit_gradient(
    numbers: Coefficients, logp: Float[Array, "n v"], logits: Float[Array, "n v"]
) -> Float[Array, "n v"]:
    """dL/dz of a tile, from log p and the second policy's logits."""
    logq = jnp.clip(logits - numbers.logsumexp[:, None], LOWEST, 0)
    inner = numbers.alpha[:, None]
    if numbers.kl is not None:
        inner = inner + numbers.kl[:, None] * (logp - logq)
    if numbers.js is not None:
        inner = inner + numbers.js[:, None] * _to_mixture(logp, logq)
    gradient = jnp.exp(logp) * inner
    if numbers.reverse_kl is not None:
        gradient = gradient - numbers.reverse_kl[:, None] * jnp.exp(logq)
    return gradient


def _relative_entropy(logp, logq):
    """p u - p + q ≥ 0 with u = log p - log q, without cancellation where u is small."""
    u = logp - logq
    near = jnp.abs(u) < 1
    small = jnp.where(near, u, 0)
    p = jnp.exp(logp)
    return jnp.maximum(
        jnp.where(near, p * (jnp.expm1(-small) + small), p * (u - 1) + jnp.exp(logq)), 0
    )


def _to_mixture(logp, logq):
    """log(p/m) with m = (p + q) / 2, without cancellation where p is close to q."""
    u = logp - logq
    near = jnp.abs(u) < 1
    small = jnp.where(near, u, 0)
    far = jnp.log(jnp.asarray(2, u.dtype)) - jax.nn.softplus(-u)
    return jnp.where(near, jnp.log1p(jnp.tanh(small / 2)), far)
