"""Advantages scaled by how uncertain the policy is at the token."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.masked import masked_min
from rlvr_jax.objectives.statistics.scopes import scoped_mean, scoped_std, within_batch
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import part

__all__ = ["entropy_z_score", "scale_by_entropy"]


def entropy_z_score(
    entropy: Float[Array, "B T"], mask: Bool[Array, "B T"], rollouts: Rollouts
) -> Float[Array, "B T"]:
    """(H - mean) / std over the tokens of the batch, std with n - 1; 0 where all are equal."""
    sets = within_batch(rollouts)
    spread = scoped_std(entropy, mask, sets, ddof=1)
    deviation = entropy - scoped_mean(entropy, mask, sets)
    return jnp.where(mask, deviation / jnp.where(spread > 0, spread, 1), 0)


@part(reads={"entropy", "batch_statistics"}, writes={"advantage"})
def scale_by_entropy(coefficient: Finite) -> Transform:
    """Favours uncertain tokens: A' = A (1 + c z), z the `entropy_z_score` of the batch.

    Nothing is floored: where z < -1/c the sign of the advantage turns.

    Args:
      coefficient: c.
    Reads: advantage, entropy, mask. Writes: advantage. Metrics: entropy_scale_min.
    Raises:
      ValueError: coefficient not finite.
    Source: Dong et al. 2025, https://arxiv.org/abs/2510.14545.
    """

    def apply(signals, context, state):
        entropy = jax.lax.stop_gradient(context.stats.entropy)
        score = entropy_z_score(entropy, signals.mask, context.rollouts)
        scale = 1 + coefficient * score
        metrics = {"entropy_scale_min": masked_min(scale, signals.mask)}
        return replace(signals, advantage=signals.advantage * scale), state, metrics

    return apply
