"""Corrections for rollouts whose sampling distribution is not the ratio's denominator.

Sampler and trainer may disagree: cached decoding, quantization, another engine, older weights. Let
r = exp(old_logp - behaviour_logp), without gradient. A correction lowers the weight of tokens or
rollouts with a small r, sets it to 0, or takes them out of the mask.

`truncate_importance` multiplies the weight by min(r, C). Rollout correction adds transforms that
take whole rollouts out of the mask. `band_importance` of ASearcher sets the weight of tokens
outside a band to 0. In one objective, weights multiply and masks intersect.
"""

from collections.abc import Callable

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.algebra.summary import effective_sample_size
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean, masked_min
from rlvr_jax.objectives.statistics.ratios import Ratio, clamped_token_ratio
from rlvr_jax.types import Mask, Rows, Values, part, replace
from rlvr_jax.types.hyperparameters import Bound

__all__ = ["truncate_importance"]

SAMPLED = frozenset({"behaviour_logp"})
# At the first update of a batch the old log-probs are those of the current policy.
OVER_BATCH = frozenset({"logp", "batch_statistics"}) | SAMPLED


def sampler_divergence(old_logp: Values, behaviour_logp: Values, mask: Mask) -> Rows:
    """Mean over the tokens of a rollout of r - 1 - log r ≥ 0 (nats), log r clamped to ±20."""
    d = jnp.clip(old_logp - behaviour_logp, -20, 20)
    return masked_mean(jnp.expm1(d) - d, mask, axis=1)


@part(writes={"weight"})
def truncate_importance(
    cap: Bound, ratio: Ratio = clamped_token_ratio, normalizer: Callable | None = None
) -> Transform:
    """Weighs each token by its importance, bounded above: weight' = weight · min(r, C).

    Args:
      cap: largest weight (C).
      ratio: computes r from (old_logp, behaviour_logp, mask). `clamped_token_ratio` is per token
        (low variance, biased), `product_ratio` per rollout (high variance, unbiased).
      normalizer: a mean by which the weights are divided: `masked_mean` over the tokens, or
        `mean_of_rollouts` for weights of whole rollouts. None: no division.
    Metrics: importance/min, importance/mean, importance/max (r over the tokens, without the bound),
      importance/effective_sample_size (fraction of the tokens), importance_capped_fraction
      (fraction with r > C).
    Source: verl, https://github.com/volcengine/verl (docs/algo/rollout_corr.md).
    """

    def apply(signals, context, state):
        mask = signals.mask
        own = ratio(context.old_logp, context.rollouts.behaviour_logp, mask)
        weight = jnp.minimum(own, cap)
        metrics = {
            "importance/min": masked_min(own, mask),
            "importance/mean": masked_mean(own, mask),
            "importance/max": masked_max(own, mask),
            "importance/effective_sample_size": effective_sample_size(own, mask),
            "importance_capped_fraction": masked_mean(own > cap, mask),
        }
        if normalizer is not None:
            mean = normalizer(weight, mask)
            weight = weight / jnp.where(mean > 0, mean, 1)
        return replace(signals, weight=signals.weight * weight), state, metrics

    pooled = normalizer is not None
    return Transform(apply, reads=OVER_BATCH if pooled else SAMPLED, once=pooled)


def check_band(function: str, low: float, high: float) -> None:
    """Raises ValueError if a band is empty or begins below 0."""
    if not 0 <= low <= high:
        raise ValueError(
            f"{function}: low and high must be 0 ≤ low ≤ high, got {low:g} and {high:g}"
        )
