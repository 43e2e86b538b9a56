"""SEED-GRPO: smaller steps on prompts whose answers disagree.

"SEED-GRPO: Semantic Entropy Enhanced GRPO for Uncertainty-Aware Policy Optimization",
https://github.com/Dreamer312/SEED-GRPO

    p_k  = Σ_{i with answer k} exp ℓ_i / Σ_i exp ℓ_i, ℓ_i the mean old log-prob of the tokens
    SE   = -Σ_k p_k ln p_k,  u = SE / ln n in [0, 1]
    A_i  = (R_i - mean) / (1 + α u)
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

Made from a review of the paper and a third-party port, whose f and α these are. The paper's f is
linear, exponential or focal in u (`linear_decay` and so on), its α was not found; and it estimates
SE by -mean_k ln p_k. Ours is the clip of 0.2.
"""

from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.semantic_credit import (
    Decay,
    hyperbolic_decay,
    scale_by_semantic_entropy,
)
from rlvr_jax.types import Method, Recipe


def seed_grpo(
    entropy_rate: float = 0.0417,
    decay: Decay = hyperbolic_decay,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """Centered rewards, scaled down by the semantic entropy of the group.

    Args:
      entropy_rate: how much full disagreement takes away (α).
      decay: f, a function (u, α) of `rlvr_jax.objectives.transforms.semantic_credit`.
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            transforms=[scale_by_semantic_entropy(entropy_rate, decay)],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    seed_grpo,
    "SEED-GRPO: Semantic Entropy Enhanced GRPO for Uncertainty-Aware Policy Optimization",
    "https://github.com/Dreamer312/SEED-GRPO",
    changes="advantage",
    evidence="reconstruction",
    left_out="answers that say the same in other words",
    reports="Qwen2.5-Math-7B: AIME24 56.7, AMC 68.7, MATH 83.4, Minerva 34.2, OlympiadBench 48.0",
    traps=(
        "at the port's rate it takes 4 % at most; it never changes order in a group; hard prompts "
        "disagree, too, and lose weight; the port makes every unread answer a cluster of its own"
    ),
)
