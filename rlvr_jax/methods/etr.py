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

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.trust_regions import elastic_clip
from rlvr_jax.types import Method, Recipe


def etr(clip: float = 0.2, micro: float = 0.5, macro: float = 0.5, epsilon: float = 1e-6) -> Recipe:
    """A clipped ratio on the token mean, with half-widths of each rollout's own.

    Args:
      clip: half-width of the trust region where nothing widens it (ε).
      micro: how much a large advantage widens it (λ_micro).
      macro: how much mixed outcomes of the group widen it (λ_macro).
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[elastic_clip(micro, macro)],
            surrogate=ppo_clip(low=clip, high=clip),
            aggregation=token_mean(),
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
