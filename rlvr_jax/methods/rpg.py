"""RPG: the policy gradient of a return that is regularized by a KL to the policy that sampled.

Zhang et al. 2025, "On the Design of KL-Regularized Policy Gradient Algorithms for LLM Reasoning",
https://arxiv.org/abs/2505.17508

    w    = π/π_old of the token;  R = reward - mean of the group;  C = -β w dKL/dw
    loss = -Σ sg(R b + C) logp / Σ n_i,  b = w in the trust region and its bound outside

This is the paper's REINFORCE form with its own clip: for R + C/w ≥ 0 a token is trained where
w < 1 + ε_high, else where 1 - ε_low < w < c. The clip leaves C alone. The reference is the old
policy, renewed with every batch, so with one update per batch β does nothing.

The paper derives four divergences; that `unnormalized_reverse_kl` is the default is our choice.
β and ε are the paper's, c = 10 that of the scripts. With the same gradient inside the trust region
there are `importance_weighted` plus `old_policy_kl`, and `ppo_clip` on `regularize_advantage`. The
released code runs another loss, a dual-clipped ratio on R plus `old_policy_kl(…, limit=10)`; this
recipe is made from the paper.
"""

from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.regularized_gradients import (
    PolicyKL,
    regularized_clip,
    unnormalized_reverse_kl,
)
from rlvr_jax.types import Method, Recipe


def rpg(
    kl_coefficient: float = 1e-4,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual: float = 10.0,
    divergence: PolicyKL = unnormalized_reverse_kl,
) -> Recipe:
    """Centered rewards on the token mean, with a clipped weight that holds the old policy.

    Args:
      kl_coefficient: weight of the divergence from the old policy (β).
      clip_low, clip_high: half-widths of the trust region (ε_low, ε_high).
      dual: largest ratio at which a token is pushed down (c).
      divergence: one of `rlvr_jax.objectives.surrogates.regularized_gradients`.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=regularized_clip(divergence, kl_coefficient, clip_low, clip_high, dual),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    rpg,
    "On the Design of KL-Regularized Policy Gradient Algorithms for LLM Reasoning",
    "https://arxiv.org/abs/2505.17508",
    changes="advantage, surrogate, regularizer",
    evidence="reconstruction",
    left_out="the group filter and length penalty of `dapo`, which the paper adds",
    reports="Qwen3-4B on DAPO-Math-17k: 52 % on AIME25, up to 6 points over DAPO",
    traps=(
        "at β 1e-4 and one update per batch the KL does nothing; the released code never calls "
        "its REINFORCE form, which has a sign unlike the paper's; GRPO's k3 lacks the weight w, "
        "so it is not that gradient"
    ),
)
