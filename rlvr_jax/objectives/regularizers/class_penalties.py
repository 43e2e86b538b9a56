"""Divergences whose tokens are averaged class by class, added to the aggregated loss."""

import jax

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.divergences import Divergence, k3_clamped
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative, Unit
from rlvr_jax.types.parts import part

__all__ = ["kl_by_entropy"]


@part(writes={"term"})
def kl_by_entropy(
    quantile: Unit,
    low_entropy: NonNegative,
    high_entropy: NonNegative,
    estimator: Divergence = k3_clamped,
) -> Transform:
    """A KL to the reference with one weight for uncertain tokens and one for the others.

    term' = term + β_low · mean over the tokens at or below the quantile of their rollout's entropy
    + β_high · mean over those above it. Each class is divided by its own number of tokens, so the
    weight of a token depends on the size of its class; an empty class gives 0.

    Args:
      quantile: of the entropies of a rollout, in [0, 1], with linear interpolation.
      low_entropy, high_entropy: β_low and β_high, at least 0.
      estimator: one of `rlvr_jax.objectives.statistics.divergences`.
    Reads: entropy, logp, old_logp, reference_logp, mask. Writes: term. Metrics: kl_low_entropy and
      kl_high_entropy, the two means (nats).
    Raises:
      ValueError: quantile outside [0, 1], or a negative weight.
    Source: Wang et al. 2025, https://arxiv.org/abs/2507.15778.
    """

    def apply(signals, context, state):
        stats, rollouts, mask = context.stats, context.rollouts, signals.mask
        entropy = jax.lax.stop_gradient(stats.entropy)
        high = above_quantile(entropy, mask, within_response(rollouts), quantile)
        kl = estimator(stats.logp, rollouts.reference_logp, context.old_logp)
        low_mean, high_mean = masked_mean(kl, mask & ~high), masked_mean(kl, high)
        term = signals.term + low_entropy * low_mean + high_entropy * high_mean
        metrics = {"kl_low_entropy": low_mean, "kl_high_entropy": high_mean}
        return replace(signals, term=term), state, metrics

    # The means divide by the tokens of the whole batch that fall into a class.
    reads = {"entropy", "logp", "reference_logp", "batch_statistics"}
    return Transform(apply, reads=reads)
