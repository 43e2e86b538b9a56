"""Soft tokens: positions where the policy's input is a mixture of embeddings instead of one token.

Sampling. The nucleus of the k most probable tokens is renormalized to p. With Gumbel noise ε the
recorded number of a candidate is g = log(p + 1e-6) + ε, and its weight in the mixture is
softmax(g / τ). Training. The density of the record, under the candidates' current log-probs q, is

    logp = mean over the candidates with q > floor of -e - exp(-e),  e = clip(g - q, low, high)

so all candidates get credit, not one token. A mean instead of a sum makes the ratio closer to 1
than that of the densities. Clamped noise has no gradient.
Source: Zheng and Lee 2025, https://arxiv.org/abs/2511.06411.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.statistics.masked import masked_mean


class GumbelNoise(NamedTuple):
    """Bounds of the noise of soft tokens, in sampling and in scoring.

    Fields:
      low, high: bounds of the noise.
      floor: candidates with a log-prob at or below it do not enter the density.
      epsilon: added to a probability before its logarithm.
    """

    low: float = -1.5
    high: float = 3.0
    floor: float = -3.0
    epsilon: float = 1e-6

    def __str__(self) -> str:
        return f"[{self.low:g}, {self.high:g}] above {self.floor:g}"


def nucleus_candidates(
    logits: Float[Array, "... V"], k: int, top_p: float
) -> tuple[Int[Array, "... k"], Float[Array, "... k"]]:
    """The k most probable tokens and their probabilities, 0 outside their nucleus of mass `top_p`.

    A candidate stays if the mass of the more probable ones is below `top_p`. The sum is 1.
    """
    p, ids = jax.lax.top_k(jax.nn.softmax(logits, axis=-1), k)
    p = p / jnp.sum(p, axis=-1, keepdims=True)
    before = jnp.cumsum(p, axis=-1) - p
    p = jnp.where(before < top_p, p, 0)
    return ids, p / jnp.sum(p, axis=-1, keepdims=True)


def perturbed(
    p: Float[Array, "... k"], noise: Float[Array, "... k"], bounds: GumbelNoise
) -> Float[Array, "... k"]:
    """Noisy log-probs of the candidates of a soft token: g = log(p + 1e-6) + clip(noise).

    They are the record `candidate_noisy_logp`."""
    return jnp.log(p + bounds.epsilon) + jnp.clip(noise, bounds.low, bounds.high)


def mixture_weights(noisy_logp: Float[Array, "... k"], temperature: float) -> Float[Array, "... k"]:
    """Weights of the candidates of a soft token in the next input: softmax(g / τ)."""
    return jax.nn.softmax(noisy_logp / temperature, axis=-1)


def soft_token_logp(
    candidate_logp: Float[Array, "... k"],
    noisy_logp: Float[Array, "... k"],
    bounds: GumbelNoise,
) -> Float[Array, "..."]:
    """The mean log-density, under the current policy, of the noise that led to a mixture.

    Args:
      candidate_logp: carries the gradient; renormalized over the candidates, without a nucleus.
      noisy_logp: g, the record of sampling.
    """
    q = jnp.log(jax.nn.softmax(candidate_logp, axis=-1) + bounds.epsilon)
    noise = noisy_logp - q
    inside = (noise >= bounds.low) & (noise <= bounds.high)
    bound = jax.lax.stop_gradient(jnp.clip(noise, bounds.low, bounds.high))
    noise = jnp.where(inside, noise, bound)
    return masked_mean(-noise - jnp.exp(-noise), q > bounds.floor, axis=-1)
