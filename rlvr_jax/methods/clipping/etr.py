"""ETR: a trust region that widens with the advantage and with the spread of the group's outcomes.

2026, "ETR: Outcome-Guided Elastic Trust Regions for Policy Optimization",
https://arxiv.org/abs/2601.03723

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  p_i = mean outcome of the group
    ε_i  = ε (1 + λ_micro tanh|A_i|) (1 + λ_macro 4 p_i (1 - p_i))
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_i, 1 + ε_i)) / Σ n_i

ε, λ_micro and λ_macro are `clip`, `micro` and `macro`. A reconstruction: the abstract names the two
influences. Ours are tanh, 4 p (1 - p), their product, both λ = 0.5 (ε_i is then in [0.2, 0.45]),
and the limit of 0.99 for the lower half-width. A summary suggests a term linear in |A|.

Reports: Qwen3-8B base, Llama-3.1-8B-Instruct and Qwen2.5-Math-7B on AIME and MATH: above GRPO, and
entropy falls more slowly (abstract, no numbers).
Traps: In the first update after sampling, no ratio leaves its region, so the method has no effect.
A rare outcome has a large advantage in a group of little spread, so the factors oppose each other.
"""

import jax.numpy as jnp

from rlvr_jax.objectives import Transform, clipped_objective, group_mean, masked_mean, part
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, replace
from rlvr_jax.types.hyperparameters import Epsilon, HalfWidth, NonNegative

WIDEST_LOW = 0.99  # a half-width of 1 or more would clip nothing from below


@part(writes={"clip_high", "clip_low"})
def elastic_clip(micro: NonNegative, macro: NonNegative) -> Transform:
    """Multiplies both half-widths by the two factors of ε_i; the lower one is at most 0.99.

    Metrics: trust_region_scale (mean factor of the trust region).
    """

    def apply(signals, context, state):
        pass_rate = group_mean(context.rollouts.outcome, context.rollouts.group)
        by_group = (1 + macro * 4 * pass_rate * (1 - pass_rate))[:, None]
        by_advantage = 1 + micro * jnp.tanh(jnp.abs(signals.advantage))
        scale = by_advantage * by_group
        low = jnp.minimum(signals.clip_low * scale, WIDEST_LOW)
        signals = replace(signals, clip_low=low, clip_high=signals.clip_high * scale)
        return signals, state, {"trust_region_scale": masked_mean(scale, signals.mask)}

    return apply


def etr(
    clip: HalfWidth = 0.2,
    micro: NonNegative = 0.5,
    macro: NonNegative = 0.5,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clips the ratio to a range that is wider for large advantages and mixed groups.

    Args:
      clip: half-width of the trust region before it is widened (ε).
      micro: widening by a large advantage (λ_micro).
      macro: widening by mixed outcomes of the group (λ_macro).
    """
    transforms = [elastic_clip(micro, macro)]
    return Recipe(objective=clipped_objective(clip, clip, epsilon=epsilon, transforms=transforms))


METHOD = Method(etr, changes="surrogate", evidence="reconstruction", shown=LOSS_ON_BRACKETS)
