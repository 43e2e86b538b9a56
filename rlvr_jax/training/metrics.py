"""Default curves: numbers about a batch of rollouts and its token statistics."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.masked import masked_mean, masked_quantile
from rlvr_jax.types import Rollouts, TokenStats

__all__ = ["LOW_ENTROPY", "token_metrics"]

LOW_ENTROPY = 0.01
"""Nats below which a token counts as decided."""


def token_metrics(stats: TokenStats, rollouts: Rollouts) -> dict[str, Float[Array, ""]]:
    """Entropy of the current policy, nats per response token, and how it is spread.

    Metrics: entropy (mean), entropy/p10, /p50, /p90 (quantiles over tokens), entropy/right and
    /wrong (mean over the tokens of right and of wrong answers, NaN if there is none), and
    low_entropy_share (tokens below 0.01 nats).
    """
    entropy, mask = stats.entropy, rollouts.mask
    right = mask & (rollouts.outcome >= 0.5)[:, None]
    wrong = mask & ~right

    def mean_or_nan(where):
        return jnp.where(jnp.any(where), masked_mean(entropy, where), jnp.nan)

    return {
        "entropy": masked_mean(entropy, mask),
        **{f"entropy/p{q}": masked_quantile(entropy, mask, q / 100) for q in (10, 50, 90)},
        "entropy/right": mean_or_nan(right),
        "entropy/wrong": mean_or_nan(wrong),
        "low_entropy_share": masked_mean((entropy < LOW_ENTROPY).astype(entropy.dtype), mask),
    }
