"""ETR: a trust region that grows with the advantage and with the spread of the group's outcomes.

2026, "ETR: Outcome-Guided Elastic Trust Regions for Policy Optimization",
https://arxiv.org/abs/2601.03723

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  p_i = mean outcome of the group
    ε_i  = ε (1 + λ_micro tanh|A_i|) (1 + λ_macro 4 p_i (1 - p_i))
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_i, 1 + ε_i)) / Σ n_i

A reconstruction: the abstract names the two influences; tanh, 4 p (1 - p), their product and both
λ = 0.5 (ε_i then stays within [0.2, 0.45]) are ours, and so is the lower half-width's limit of
0.99. A summary suggests a term linear in |A|.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Epsilon, NonNegative
from rlvr_jax.types.parts import part

WIDEST_LOW = 0.99  # a half-width of 1 or more would clip nothing from below


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
    Metrics: trust_region_scale, the mean factor.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        wide = pass_rate_widening(rollouts.outcome, rollouts.group, macro)[:, None]
        scale = advantage_widening(signals.advantage, micro) * wide
        low = jnp.minimum(signals.clip_low * scale, WIDEST_LOW)
        signals = replace(signals, clip_low=low, clip_high=signals.clip_high * scale)
        return signals, state, {"trust_region_scale": masked_mean(scale, signals.mask)}

    return apply


def etr(
    clip: float = 0.2, micro: float = 0.5, macro: float = 0.5, epsilon: Epsilon = 1e-6
) -> Recipe:
    """A clipped ratio on the token mean, with half-widths of each rollout's own.

    Args:
      clip: half-width of the trust region where nothing widens it (ε).
      micro: how much a large advantage widens it (λ_micro).
      macro: how much mixed outcomes of the group widen it (λ_macro).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip,
            clip_high=clip,
            advantage=group_normalized(epsilon),
            transforms=[elastic_clip(micro, macro)],
        )
    )


METHOD = Method(
    etr,
    "ETR: Outcome-Guided Elastic Trust Regions for Policy Optimization",
    "https://arxiv.org/abs/2601.03723",
    changes="surrogate",
    evidence="reconstruction",
    reports=(
        "Qwen3-8B base, Llama-3.1-8B-Instruct and Qwen2.5-Math-7B on AIME and MATH: above GRPO, "
        "entropy falls more slowly (abstract)"
    ),
    traps=(
        "in the first update after sampling no ratio leaves its region, so it changes nothing; a "
        "rare outcome has a large advantage in a group of little spread, so its two factors work "
        "against each other"
    ),
)
