"""How peaked the distribution of a token is."""

from jaxtyping import Array, Float

__all__ = ["self_certainty"]


def self_certainty(
    logsumexp: Float[Array, "B T"], mean_logit: Float[Array, "B T"]
) -> Float[Array, "B T"]:
    """log Σ exp z - mean z = KL(uniform ‖ p) + log V: the more, the more peaked p is."""
    return logsumexp - mean_logit
