"""The policy gradient with weights that are data: the ratio scales a step and carries no gradient.

Where a clipped ratio (`ppo_clip`) silences a token outside the trust region, these losses go on
training it with the weight of the bound.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.statistics.ratios import Ratio, clip_to_trusted, token_ratio
from rlvr_jax.types import replace
from rlvr_jax.types.parts import part


@part
def weighted_reinforce(
    low: float = jnp.inf, high: float = jnp.inf, ratio: Ratio = token_ratio
) -> Surrogate:
    """The policy gradient with a capped importance weight: -w A logp, w without gradient.

    w = sg(clip(ρ, 1 - ε_low, 1 + ε_high)).
    Inside the bounds the gradient is that of -A ρ; outside it is that of the bound, for both signs
    of A. The value of the loss means nothing. Transforms may replace the bounds token by token.

    Args:
      low: half-width below 1 (ε_low), at least 0; with 1 or more small weights stay as they are.
      high: half-width above 1 (ε_high), at least 0; inf for no cap.
      ratio: ρ, one of `rlvr_jax.objectives.statistics.ratios`.
    Raises:
      ValueError: a negative half-width.
    Source: MiniMax 2025, https://arxiv.org/abs/2506.13585.
    """
    for name, value in (("low", low), ("high", high)):
        if not value >= 0:
            raise ValueError(f"weighted_reinforce: {name} must be at least 0, got {value}")

    def prepare(signals, context):
        return replace(
            signals,
            ratio=ratio(context.stats.logp, context.old_logp, signals.mask),
            clip_low=jnp.full_like(signals.clip_low, low),
            clip_high=jnp.full_like(signals.clip_high, high),
        )

    def loss(signals, context):
        weight = jax.lax.stop_gradient(clip_to_trusted(signals))
        return -weight * signals.advantage * context.stats.logp

    def remark(plan):
        if plan.updates_per_batch == 1 and (low < 1 or high < jnp.inf):
            return "caps nothing: with one update per batch the ratio is exactly 1."
        return None

    return Surrogate(prepare, loss, remark)
