"""The policy gradient with weights that are data: the ratio scales a step and carries no gradient.

Where a clipped ratio (`ppo_clip`) silences a token outside the trust region, these losses go on
training it with the weight of the bound.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Surrogate, at_one_update, no_remark
from rlvr_jax.objectives.statistics.ratios import Ratio, clip_to_trusted, token_ratio
from rlvr_jax.objectives.surrogates.policy_gradient import with_ratio
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow
from rlvr_jax.types.parts import part


@part
def weighted_reinforce(
    low: ClipLow = jnp.inf, high: ClipHigh = jnp.inf, ratio: Ratio = token_ratio
) -> Surrogate:
    """The policy gradient with a capped importance weight: -w A logp, w without gradient.

    w = sg(clip(ρ, 1 - ε_low, 1 + ε_high)).
    Inside the bounds the gradient is that of -A ρ; outside it is that of the bound, for both signs
    of A. The value of the loss means nothing. Transforms may replace the bounds token by token.

    Args:
      low: with 1 or more small weights do not change.
      high: inf for no cap.
      ratio: ρ, one of `rlvr_jax.objectives.statistics.ratios`.
    Source: MiniMax 2025, https://arxiv.org/abs/2506.13585.
    """

    def loss(signals, context):
        weight = jax.lax.stop_gradient(clip_to_trusted(signals))
        return -weight * signals.advantage * context.stats.logp

    idle = at_one_update("caps nothing: with one update per batch the ratio is exactly 1.")
    remark = idle if low < 1 or high < jnp.inf else no_remark
    return Surrogate(with_ratio(ratio, low, high), loss, remark)
