"""Numbers that every objective reports about its signals."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.statistics.covariance import token_covariance
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean, masked_min
from rlvr_jax.objectives.statistics.ratios import is_clipped
from rlvr_jax.types import Signals


def summarize(signals: Signals, logp: Float[Array, "B T"]) -> dict[str, Float[Array, ""]]:
    """The metrics that every objective reports, over the mask; 0 if the mask is empty."""
    # Without this, JAX also traces the derivatives of the metrics.
    signals, logp = jax.lax.stop_gradient((signals, logp))
    ratio, mask = signals.ratio, signals.mask
    return {
        "clipped_fraction": masked_mean(is_clipped(signals), mask),
        "covariance": masked_mean(token_covariance(signals.advantage, logp, mask), mask),
        "ratio/min": masked_min(ratio, mask),
        "ratio/mean": masked_mean(ratio, mask),
        "ratio/max": masked_max(ratio, mask),
        "ratio/effective_sample_size": effective_sample_size(ratio, mask),
    }


def effective_sample_size(ratio: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, ""]:
    """The fraction of the tokens that, equally weighted, would have the same variance, in (0, 1].

    (Σ ρ)² / (n Σ ρ²); 1 if all ratios are equal, 0 for an empty mask.
    """
    largest = masked_max(ratio, mask)
    scaled = ratio / jnp.where(largest > 0, largest, 1)  # squares of large ratios overflow float32
    mean_square = masked_mean(scaled**2, mask)
    return masked_mean(scaled, mask) ** 2 / jnp.where(mean_square > 0, mean_square, 1)
