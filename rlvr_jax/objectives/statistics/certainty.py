"""How peaked the distribution of a token is."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["self_certainty", "token_certainty", "top_margin"]


def self_certainty(
    logsumexp: Float[Array, "B T"], mean_logit: Float[Array, "B T"]
) -> Float[Array, "B T"]:
    """log Σ exp z - mean z = KL(uniform ‖ p) + log V: the more, the more peaked p is."""
    return logsumexp - mean_logit


def token_certainty(
    logsumexp: Float[Array, "B T"], mean_logit: Float[Array, "B T"], vocabulary: int
) -> Float[Array, "B T"]:
    """KL(uniform ‖ p) = -ln V - mean_v ln p_v of each token, nats, at least 0."""
    return self_certainty(logsumexp, mean_logit) - math.log(vocabulary)


def top_margin(topk_logp: Float[Array, "B T K"]) -> Float[Array, "B T"]:
    """p of the likeliest token minus p of the second."""
    return jnp.exp(topk_logp[..., 0]) - jnp.exp(topk_logp[..., 1])
