"""A level that another policy's row sets, above or below which the policy is pushed harder."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_count, group_mean
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Finite, NonNegative, Unit
from rlvr_jax.types.parts import part

__all__ = ["calibrate_to_expert", "calibration_loss", "expert_level"]


def expert_level(
    old_logp: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    off_policy: Bool[Array, "B"],
    group: Int[Array, "B"],
) -> tuple[Float[Array, "B T"], Bool[Array, "B T"]]:
    """What the policy that sampled gave the expert's token at the same position, and where the
    expert has one. A mean over the experts of the group, if it has several."""
    there = mask & off_policy[:, None]
    along_tokens = jax.vmap(group_mean, in_axes=(1, None, 1), out_axes=1)
    count = jax.vmap(group_count, in_axes=(None, 1), out_axes=1)(group, there)
    return along_tokens(old_logp, group, there), count > 0


def calibration_loss(
    distance: Float[Array, "B T"],
    right: Bool[Array, "B"],
    slope: float,
) -> Float[Array, "B T"]:
    """LeakyReLU of ∓Δ: -Δ for right rows and Δ for wrong ones, where positive; else `slope` times.

    Args:
      distance: Δ = logp - the expert's level.
    """
    signed = jnp.where(right[:, None], -distance, distance)
    return jnp.where(signed > 0, signed, slope * signed)


@part(reads={"logp", "off_policy", "batch_statistics"}, writes={"penalty"})
def calibrate_to_expert(coefficient: NonNegative, slope: Unit, right_above: Finite) -> Transform:
    """Pushes tokens towards the level of an expert's row at full strength, beyond it at less.

    penalty' = penalty + c · LeakyReLU(-s Δ) |A|, s = 1 for right rows and -1 for wrong ones, where
    the group has an expert's token at the position. The two texts differ: the level is how sure the
    policy was of an unrelated token. |A| weighs the row by how rare its outcome is in the group.

    Args:
      coefficient: c, at least 0.
      slope: of the LeakyReLU below 0, in [0, 1].
      right_above: outcome above which a row is right.
    Reads: logp, old_logp, advantage, outcome, group, off_policy, mask. Writes: penalty.
    Metrics: calibration_loss (mean over the tokens before c).
    Raises:
      ValueError: a negative coefficient, a slope outside [0, 1], a bound that is not finite.
    Source: CalibRL, https://github.com/zhh6425/CalibRL.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        level, there = expert_level(
            context.old_logp, rollouts.mask, rollouts.off_policy, rollouts.group
        )
        right = rollouts.outcome > right_above
        values = calibration_loss(context.stats.logp - level, right, slope)
        values = jnp.where(there, values, 0) * jnp.abs(signals.advantage)
        told = {"calibration_loss": masked_mean(values, signals.mask)}
        return replace(signals, penalty=signals.penalty + coefficient * values), state, told

    return apply
