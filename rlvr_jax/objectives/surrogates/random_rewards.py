"""The clipped loss in expectation over rewards that do not depend on the rollout."""

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative, Positive
from rlvr_jax.types.parts import part

__all__ = ["clipped_noise"]


@part
def clipped_noise(low: NonNegative, high: NonNegative, moment: Positive) -> Surrogate:
    """-E[J] = -μ (min(ρ, 1 + ε_high) - max(ρ, 1 - ε_low)): advantages are not read.

    With the mean over tokens it is what PPO's clip does by itself, without the noise of rewards.

    Args:
      low, high: half-widths of the trust region, at least 0.
      moment: μ = E[max(A, 0)], see `half_moment`.
    Raises:
      ValueError: a negative half-width, or moment not positive.
    Source: "Exploration v.s. Exploitation: Rethinking RLVR through Clipping, Entropy, and Spurious
      Reward".
    """

    def prepare(signals, context):
        return replace(
            signals,
            ratio=token_ratio(context.stats.logp, context.old_logp, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, low),
            clip_high=jnp.full_like(signals.clip_high, high),
        )

    def loss(signals, context):
        del context
        upper = jnp.minimum(signals.ratio, 1 + high)
        return -moment * (upper - jnp.maximum(signals.ratio, 1 - low))

    def remark(plan):
        if plan.updates_per_batch == 1:
            return "is constant: with one update per batch the ratio is exactly 1."
        return None

    return Surrogate(prepare, loss, remark)
