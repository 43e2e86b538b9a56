"""UCAS: pay unsure right answers more, punish sure wrong ones more, and charge sharp tokens.

"Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning",
https://github.com/xvolcano02/UCAS

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    c_i  = Σ_t (log Σ exp z - mean z), ĉ_i the same standardised in the group
    W_i  = exp(-β₊ ĉ_i) where A_i > 0, exp(β₋ ĉ_i) elsewhere
    A'_t = A_i W_i - c x_t, at least 0 where A_i > 0
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

z are the logits of the policy that sampled at its temperature, x_t the raw logit of the sampled
token, min-max over the batch. Constants are hard-coded in the authors' code. Groups of equal
rewards are pushed down by -c x. In a group of one we have A = ĉ = 0; the code takes mean 0 and std
1 there. Their switch to Dr. GRPO leaves out both divisions by std.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.certainty_credit import charge_sampled_logit, scale_by_certainty
from rlvr_jax.types import Method, Recipe


def ucas(
    positive_rate: float = 0.25,
    negative_rate: float = 0.35,
    logit_coefficient: float = 0.05,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """GRPO's advantages, shaped by self-certainty and charged for raw logits, on the token mean.

    Args:
      positive_rate, negative_rate: strength of the certainty for either sign (β₊, β₋).
      logit_coefficient: charge of the sharpest token of the batch (c).
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=[
                scale_by_certainty(positive_rate, negative_rate),
                charge_sampled_logit(logit_coefficient),
            ],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    ucas,
    "Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper Reasoning",
    "https://github.com/xvolcano02/UCAS",
    changes="advantage",
    reports=(
        "Qwen2.5-Math 1.5B and 7B, five maths sets: above GRPO, DAPO and entropy methods, longer "
        "and more diverse (no number)"
    ),
    traps=(
        "certainty is a sum, so sure means long; groups of equal rewards are pushed down, right "
        "ones too; raw logits differ between models that are one policy; advantages no longer sum "
        "to 0"
    ),
)
