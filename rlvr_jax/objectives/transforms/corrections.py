"""Corrections for rollouts that another distribution drew than the one the ratio divides by.

Sampler and trainer disagree (cached decoding, quantization, another engine, older weights). With
r = exp(old_logp - behaviour_logp), never with gradient, a token or a rollout that the sampler drew
too readily is weighed down, silenced, or taken out:

| transform | changes | denominators |
|---|---|---|
| `truncate_importance` | weight · min(r, C) | stay |
| `band_importance` | weight · r where r is in a band, 0 elsewhere | stay |
| `drop_by_ratio`, `drop_by_divergence` | the mask of whole rollouts | shrink |
| `drop_drifted_failures` | weight 0 for rollouts with A < 0 that the policy left | stay |

Several may stand in one objective: they multiply and intersect.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.algebra.summary import effective_sample_size
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean, masked_min
from rlvr_jax.objectives.statistics.ratios import Ratio, clamped_token_ratio, sequence_ratio
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Bound, Finite, HalfWidth
from rlvr_jax.types.parts import part

__all__ = [
    "band_importance",
    "drop_by_divergence",
    "drop_by_ratio",
    "drop_drifted_failures",
    "mean_of_rollouts",
    "sampler_divergence",
    "truncate_importance",
]


SAMPLED = frozenset({"behaviour_logp"})
# At the first update of a batch the old log-probs are the current policy's.
OVER_BATCH = frozenset({"logp", "batch_statistics"}) | SAMPLED


def sampler_divergence(
    old_logp: Float[Array, "B T"], behaviour_logp: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B"]:
    """Mean over the tokens of a rollout of r - 1 - log r ≥ 0 (nats), log r clamped to ±20."""
    d = jnp.clip(old_logp - behaviour_logp, -20, 20)
    return masked_mean(jnp.expm1(d) - d, mask, axis=1)


def mean_of_rollouts(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, ""]:
    """Mean over the rollouts with tokens of the mean over their tokens; 0 for an empty mask."""
    return masked_mean(masked_mean(values, mask, axis=1), jnp.any(mask, axis=1))


@part(writes={"weight"})
def truncate_importance(
    cap: Bound, ratio: Ratio = clamped_token_ratio, normalizer: Callable | None = None
) -> Transform:
    """Weighs each token by its importance, cut from above: weight' = weight · min(r, C).

    Args:
      cap: C, positive.
      ratio: how r is taken from (old_logp, behaviour_logp, mask); `clamped_token_ratio` for tokens
        (low variance, biased), `product_ratio` for whole rollouts (the other way round).
      normalizer: a mean that the weights are divided by: `masked_mean` over the tokens,
        `mean_of_rollouts` for weights of whole rollouts; None for none.
    Reads: old_logp, behaviour_logp, mask. Writes: weight. Metrics: of r over the tokens, before it
      is cut, importance/min, /mean, /max and /effective_sample_size (share of the tokens); and
      importance_capped_share (tokens with r > C).
    Raises:
      ValueError: cap not positive.
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
            "importance_capped_share": masked_mean(own > cap, mask),
        }
        if normalizer is not None:
            mean = normalizer(weight, mask)
            weight = weight / jnp.where(mean > 0, mean, 1)
        return replace(signals, weight=signals.weight * weight), state, metrics

    pooled = normalizer is not None
    return Transform(apply, reads=OVER_BATCH if pooled else SAMPLED, once=pooled)


@part(reads=SAMPLED, writes={"weight"})
def band_importance(low: float, high: float, ratio: Ratio = clamped_token_ratio) -> Transform:
    """Weighs each token by its importance, and silences those outside a band.

    weight' = weight · r · 1[low ≤ r ≤ high].

    Args:
      low, high: the band, 0 ≤ low ≤ high.
      ratio: as in `truncate_importance`.
    Reads: old_logp, behaviour_logp, mask. Writes: weight. Metrics: silenced_share.
    Raises:
      ValueError: an empty band or a negative bound.
    Source: verl, https://github.com/volcengine/verl (docs/algo/rollout_corr.md).
    """
    check_band("band_importance", low, high)

    def apply(signals, context, state):
        own = ratio(context.old_logp, context.rollouts.behaviour_logp, signals.mask)
        inside = (low <= own) & (own <= high)
        weight = jnp.where(inside, signals.weight * own, 0)
        metrics = {"silenced_share": masked_mean(~inside, signals.mask)}
        return replace(signals, weight=weight), state, metrics

    return apply


@part(reads=OVER_BATCH, writes={"mask"})
def drop_by_ratio(low: float, high: float, ratio: Ratio = sequence_ratio) -> Transform:
    """Takes rollouts out of the loss and its denominators whose ratio lies outside a band.

    Args:
      low, high: the band, 0 ≤ low ≤ high.
      ratio: `sequence_ratio` (the geometric mean of the token ratios) or `product_ratio`.
    Reads: old_logp, behaviour_logp, mask. Writes: mask. Metrics: rejected_share, of the tokens.
    Raises:
      ValueError: an empty band or a negative bound.
    Source: verl, https://github.com/volcengine/verl (docs/algo/rollout_corr.md).
    """
    check_band("drop_by_ratio", low, high)

    def keep(context, mask):
        own = ratio(context.old_logp, context.rollouts.behaviour_logp, mask)
        return (low <= own) & (own <= high)

    return _dropping(keep)


@part(reads=OVER_BATCH, writes={"mask"})
def drop_by_divergence(limit: HalfWidth) -> Transform:
    """Takes rollouts out of the loss and its denominators whose `sampler_divergence` is too large.

    Args:
      limit: largest mean divergence that is kept, nats, at least 0.
    Reads: old_logp, behaviour_logp, mask. Writes: mask. Metrics: rejected_share, of the tokens.
    Raises:
      ValueError: a negative limit.
    Source: verl, https://github.com/volcengine/verl (docs/algo/rollout_corr.md).
    """

    def keep(context, mask):
        own = sampler_divergence(context.old_logp, context.rollouts.behaviour_logp, mask)
        return jnp.broadcast_to(own[:, None] <= limit, mask.shape)

    return _dropping(keep)


@part(reads=SAMPLED | {"logp"}, writes={"weight"})
def drop_drifted_failures(limit: Finite) -> Transform:
    """Silences tokens with A < 0 of rollouts that the current policy has moved away from.

    weight' = 0 where A < 0 and mean_t(behaviour_logp - logp) > δ. The policy need not be pushed
    further from what it no longer writes.

    Args:
      limit: δ, nats per token.
    Reads: advantage, logp, behaviour_logp, mask. Writes: weight. Metrics: silenced_share.
    Raises:
      ValueError: limit not finite.
    Source: DeepSeek-AI 2025, DeepSeek-V3.2, https://arxiv.org/abs/2512.02556.
    """

    def apply(signals, context, state):
        logp = jax.lax.stop_gradient(context.stats.logp)
        drift = masked_mean(context.rollouts.behaviour_logp - logp, signals.mask, axis=1)
        silenced = signals.mask & (signals.advantage < 0) & (drift[:, None] > limit)
        weight = jnp.where(silenced, 0, signals.weight)
        metrics = {"silenced_share": masked_mean(silenced, signals.mask)}
        return replace(signals, weight=weight), state, metrics

    return apply


def _dropping(keep):
    def apply(signals, context, state):
        mask = signals.mask & keep(context, signals.mask)
        rejected = masked_mean(signals.mask & ~mask, signals.mask)
        return replace(signals, mask=mask), state, {"rejected_share": rejected}

    return apply


def check_band(function, low, high):
    if not 0 <= low <= high:
        raise ValueError(
            f"{function}: low and high must be 0 ≤ low ≤ high, got {low:g} and {high:g}"
        )
