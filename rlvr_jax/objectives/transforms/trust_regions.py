"""Transforms that set the width of the trust region token by token, rollout by rollout."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative, Unit
from rlvr_jax.types.parts import part

WIDEST_LOW = 0.99  # a half-width of 1 or more would clip nothing from below

__all__ = [
    "advantage_widening",
    "clip_by_entropy",
    "elastic_clip",
    "pass_rate_widening",
]


def advantage_widening(advantage: Float[Array, "..."], coefficient: float) -> Float[Array, "..."]:
    """1 + λ tanh|A|: a strong signal may move the policy further."""
    return 1 + coefficient * jnp.tanh(jnp.abs(advantage))


def pass_rate_widening(
    outcome: Float[Array, "B"], group: Int[Array, "B"], coefficient: float
) -> Float[Array, "B"]:
    """1 + λ 4 p (1 - p), p the mean outcome of the group: most where half the answers are right.

    Args:
      outcome: in [0, 1].
      group: id of the group of each rollout.
      coefficient: λ.
    """
    pass_rate = group_mean(outcome, group)
    return 1 + coefficient * 4 * pass_rate * (1 - pass_rate)


@part(writes={"clip_high", "clip_low"})
def elastic_clip(micro: NonNegative, macro: NonNegative) -> Transform:
    """Widens both bounds with the size of the advantage and the spread of the group's outcomes.

    clip' = clip · `advantage_widening` · `pass_rate_widening`, clip_low' at most 0.99.

    Args:
      micro: λ of the advantage, at least 0.
      macro: λ of the pass rate, at least 0.
    Reads: advantage, outcome, group. Writes: clip_low, clip_high. Metrics: trust_region_scale, the
      mean factor.
    Raises:
      ValueError: a negative coefficient.
    Source: 2026, https://arxiv.org/abs/2601.03723; the two functions are ours.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        wide = pass_rate_widening(rollouts.outcome, rollouts.group, macro)[:, None]
        scale = advantage_widening(signals.advantage, micro) * wide
        low = jnp.minimum(signals.clip_low * scale, WIDEST_LOW)
        signals = replace(signals, clip_low=low, clip_high=signals.clip_high * scale)
        return signals, state, {"trust_region_scale": masked_mean(scale, signals.mask)}

    return apply


@part(reads={"entropy"}, writes={"chosen", "clip_high", "clip_low"})
def clip_by_entropy(quantile: Unit, low_entropy: float, high_entropy: float) -> Transform:
    """Gives the tokens of highest entropy of each rollout a trust region of their own.

    A token whose entropy lies strictly above the quantile of its rollout has the half-widths
    `high_entropy` on both sides, every other one `low_entropy`.

    Args:
      quantile: of the entropies of a rollout, in [0, 1], with linear interpolation.
      low_entropy, high_entropy: half-widths, at least 0.
    Reads: entropy, mask. Writes: clip_low, clip_high, chosen. Metrics: high_entropy_share.
    Raises:
      ValueError: quantile outside [0, 1], or a negative half-width.
    Source: Wang et al. 2025, https://arxiv.org/abs/2507.15778.
    """
    for name, value in (("low_entropy", low_entropy), ("high_entropy", high_entropy)):
        if not value >= 0:
            raise ValueError(f"clip_by_entropy: {name} must be at least 0, got {value}")

    def apply(signals, context, state):
        entropy = jax.lax.stop_gradient(context.stats.entropy)
        sets = within_response(context.rollouts)
        high = above_quantile(entropy, signals.mask, sets, quantile)
        width = jnp.where(high, high_entropy, low_entropy).astype(entropy.dtype)
        chosen = signals.chosen | high
        signals = replace(signals, clip_low=width, clip_high=width, chosen=chosen)
        return signals, state, {"high_entropy_share": masked_mean(high, signals.mask)}

    return apply
