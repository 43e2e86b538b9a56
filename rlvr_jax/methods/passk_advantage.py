"""Pass@k advantages: reward a set of k attempts by its best one.

"Pass@k Training", https://arxiv.org/abs/2508.10751 (the default); "Pass@K Policy Optimization",
https://arxiv.org/abs/2505.15201; best-of-n, https://arxiv.org/abs/2503.19595

    ρ    = 1 - C(n - c, k) / C(n, k), σ = √(ρ (1 - ρ))
    A⁺   = (1 - ρ) / (σ + 1e-6)
    A⁻   = (1 - ρ - C(n - c - 1, k - 1) / C(n - 1, k - 1)) / (σ + 1e-6)
    loss = Σ max(-A ρ_t, -A clip(ρ_t, 1 - ε, 1 + ε)) / Σ n_i

for the right and the wrong ones of n rollouts of which c are right. A⁻ ≤ 0 ≤ A⁺, they sum to 0, and
prompts with more than n - k right answers are switched off. The other papers' estimators take its
place as `advantage`: `pass_at_k_weight`, `pass_at_k_centered` and `pass_at_k_marginal` (unbiased,
without a baseline and with two) and `best_of_n`. k is 4 (of n = 32, from memory of the paper, which
also runs 8); the clip of 0.2 is GRPO's. An answer is right if its reward is 1 or more: with what
shapes the reward below it, none is.
"""

from rlvr_jax.objectives.advantages.passk import subset_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def passk_advantage(
    advantage: Transform = subset_normalized(k=4),  # noqa: B008 (frozen)
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """An advantage for solving a prompt in k attempts, with a clipped ratio on the token mean.

    Args:
      advantage: an estimator of `rlvr_jax.objectives.advantages.passk`, with its k.
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=advantage,
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    passk_advantage,
    "Pass@k Training",
    "https://arxiv.org/abs/2508.10751",
    changes="advantage",
    reports=(
        "Qwen2.5-7B: pass@k rises without loss of pass@1, and a later phase of pass@1 gains more"
    ),
    traps="only groups with few right answers carry a signal; k = 1 is GRPO",
)
