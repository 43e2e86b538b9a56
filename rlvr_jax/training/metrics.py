"""Default curves: numbers about a batch of rollouts and its token statistics."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.statistics.masked import (
    masked_max,
    masked_mean,
    masked_min,
    masked_quantile,
)
from rlvr_jax.objectives.transforms.corrections import sampler_divergence
from rlvr_jax.types import Rollouts, TokenStats, is_correct

LOW_ENTROPY = 0.01
"""Nats below which a token counts as decided."""


def token_metrics(stats: TokenStats, rollouts: Rollouts) -> dict[str, Float[Array, ""]]:
    """Returns the entropy of the current policy, nats per response token, and its distribution; NaN
    without tokens, such as if all rows are imitated.

    Metrics: entropy (mean), entropy/p10, /p50, /p90 (quantiles over tokens), entropy/correct and
    /incorrect (mean over the tokens of correct and of incorrect responses), and
    low_entropy_fraction (tokens below 0.01 nats).
    """
    entropy, mask = stats.entropy, rollouts.mask
    correct = mask & is_correct(rollouts.outcome)[:, None]
    incorrect = mask & ~correct

    def known(where, value):
        return jnp.where(jnp.any(where), value, jnp.nan)

    low = (entropy < LOW_ENTROPY).astype(entropy.dtype)
    quantiles = {q: masked_quantile(entropy, mask, q / 100) for q in (10, 50, 90)}
    return {
        "entropy": known(mask, masked_mean(entropy, mask)),
        **{f"entropy/p{q}": known(mask, value) for q, value in quantiles.items()},
        "entropy/correct": known(correct, masked_mean(entropy, correct)),
        "entropy/incorrect": known(incorrect, masked_mean(entropy, incorrect)),
        "low_entropy_fraction": known(mask, masked_mean(low, mask)),
    }


def sampler_metrics(rollouts: Rollouts, bitwise: bool = False) -> dict[str, Float[Array, ""]]:
    """Compares sampler and scorer at equal weights by r = exp(old_logp - behaviour_logp).

    Rows of another policy or of an earlier step do not count. Tokens that the policy did not sample
    do not count.

    Metrics: sampler_ratio/min and /max over the response tokens, 1 but for rounding if both have
    the same distribution; sampler_k3, mean of r - 1 - log r (nats), first within a response;
    differing_fraction, that of the tokens with r ≠ 1 (--bitwise).
    """
    mask, behaviour_logp = rollouts.mask, rollouts.behaviour_logp
    for foreign in (rollouts.records.get("off_policy"), rollouts.records.get("stored")):
        if foreign is not None:
            mask &= ~foreign[:, None]
    if "origin" in rollouts.records:
        mask &= rollouts.records["origin"] == 0
    difference = jnp.where(mask, rollouts.old_logp - behaviour_logp, 0)
    own = sampler_divergence(rollouts.old_logp, behaviour_logp, mask)
    metrics = {"differing_fraction": masked_mean(difference != 0, mask)} if bitwise else {}
    return metrics | {
        "sampler_ratio/min": jnp.exp(masked_min(difference, mask)),
        "sampler_ratio/max": jnp.exp(masked_max(difference, mask)),
        "sampler_k3": masked_mean(own, jnp.any(mask, axis=1)),
    }
