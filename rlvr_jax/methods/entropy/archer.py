"""Archer: looser constraints where the policy is uncertain, tighter ones where it is certain.

Wang et al. 2025, "Stabilizing Knowledge, Promoting Reasoning: Dual-Token Constraints for RLVR",
https://arxiv.org/abs/2507.15778

    R    = tokens whose entropy is above the 0.8 quantile of their response; K = the others
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i + β_K mean_K k3 + β_R mean_R k3

ε is 0.5 in R and 0.2 in K. The loss of a token is at most -10 A where A < 0. k3 is that of policy
and reference, clamped at 10 nats. Each class has a separate mean, so a token of K has 1.25 times
the weight that one common mean would have. Defaults are those of the authors' script, which makes
three epochs on a batch. Class means are over the batch; the authors' code takes them per
micro-batch.

Left out: the filter that rejects groups of equal outcomes.
Reports: R1-Distill-Qwen-1.5B: above DAPO on AIME24, AIME25, AMC and LiveCodeBench (no numbers).
Without the KL on tokens of K, training collapses.
Traps: The entropy is the current policy's, so a token may change its class between updates of a
batch.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives import Divergence, Transform, clipped_objective, k3_clamped, masked_mean
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response
from rlvr_jax.types import Method, Recipe, Shown, part, replace
from rlvr_jax.types.hyperparameters import (
    DualClip,
    Epsilon,
    HalfWidth,
    KLCoefficient,
    NonNegative,
    Unit,
)


@part(reads={"entropy"}, writes={"chosen", "clip_high", "clip_low"})
def clip_by_entropy(quantile: Unit, low_entropy: HalfWidth, high_entropy: HalfWidth) -> Transform:
    """Sets another trust region for the tokens of highest entropy of each rollout.

    A token whose entropy is strictly above the quantile of its rollout has the half-widths
    `high_entropy` on both sides, every other one `low_entropy`.

    Metrics: high_entropy_fraction (of the tokens).
    """

    def apply(signals, context, state):
        entropy = jax.lax.stop_gradient(context.stats.entropy)
        sets = within_response(context.rollouts)
        high = above_quantile(entropy, signals.mask, sets, quantile)
        width = jnp.where(high, high_entropy, low_entropy).astype(entropy.dtype)
        chosen = signals.chosen | high
        signals = replace(signals, clip_low=width, clip_high=width, chosen=chosen)
        return signals, state, {"high_entropy_fraction": masked_mean(high, signals.mask)}

    return apply


@part(reads={"entropy", "logp", "reference_logp", "batch_statistics"}, writes={"term"})
def kl_by_entropy(
    quantile: Unit,
    low_entropy: NonNegative,
    high_entropy: NonNegative,
    estimator: Divergence = k3_clamped,
) -> Transform:
    """A KL to the reference with one weight for uncertain tokens and one for the others.

    term' = term + β_low · mean over the tokens at or below the quantile of their rollout's entropy
    + β_high · mean over those above it. Each class is divided by its number of tokens in the batch,
    so the weight of a token depends on the size of its class. An empty class adds 0.

    Args:
      quantile: quantile of a response's entropies above which a token is uncertain; interpolated.
      low_entropy, high_entropy: weights of the KL of the two classes (β_low, β_high).
      estimator: one of `rlvr_jax.objectives.statistics.divergences`.
    Metrics: kl_low_entropy, kl_high_entropy (mean KL of tokens of low and of high entropy, nats).
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

    return apply


def archer(
    quantile: Unit = 0.8,
    clip_low_entropy: HalfWidth = 0.2,
    clip_high_entropy: HalfWidth = 0.5,
    kl_low_entropy: KLCoefficient = 0.001,
    kl_high_entropy: KLCoefficient = 0.0,
    dual: DualClip = 10.0,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies a dual-clipped ratio whose clip and KL depend on the entropy of the token.

    Args:
      quantile: quantile of a response's entropies above which a token is in R; interpolated.
      clip_low_entropy, clip_high_entropy: half-widths of the trust region (ε in K and in R).
      kl_low_entropy, kl_high_entropy: KL weights in K and R (β_K, β_R); with two zeros no reference
        is required.
    """
    penalty = kl_by_entropy(quantile, kl_low_entropy, kl_high_entropy)
    objective = clipped_objective(
        clip_low_entropy,
        clip_low_entropy,
        epsilon=epsilon,
        transforms=[clip_by_entropy(quantile, clip_low_entropy, clip_high_entropy)],
        dual_clip=dual,
        regularizers=[penalty] if kl_low_entropy or kl_high_entropy else [],
    )
    return Recipe(objective)


METHOD = Method(
    archer,
    changes="surrogate, regularizer",
    shown=Shown("brackets", "high_entropy_fraction", steps=300),
)
