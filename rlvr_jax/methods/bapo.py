"""BAPO: bounds of the ratio that are searched anew, until pushes up balance pushes down.

Xi et al. 2025, "BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy
Optimization with Adaptive Clipping", https://arxiv.org/abs/2510.18927

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    b    = Σ_{A ≥ 0} min(ρ, c_high) A / (Σ_{A < 0} max(ρ, c_low) |A| + 1e-8)
    loss = Σ max(-A ρ, -A clip(ρ, c_low, c_high)) / Σ n_i, at most -3 A where A < 0

From its start, c_low goes up while b is below the target, then c_high; log ρ is clamped to ±20. The
defaults are those of the authors' configuration: target 1 for the quotient b. The paper states its
target as a share b / (1 + b), 0.4 to 0.5, with ranges [0.6, 0.9] and [1.2, 3]. As in the authors'
code, silenced tokens count in b, so the first search, once it moves, always runs to its end.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.ratios import clamped_token_ratio
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.balance import Search, balance_signs
from rlvr_jax.types import Method, Recipe


def bapo(
    low: float = 0.6,
    low_last: float = 0.8,
    low_step: float = 0.05,
    high: float = 1.2,
    high_last: float = 2.0,
    high_step: float = 0.05,
    target: float = 1.0,
    dual: float = 3.0,
    epsilon: float = 1e-6,
    balance_epsilon: float = 1e-8,
) -> Recipe:
    """A dual-clipped ratio on the token mean, with bounds found by a search in every batch.

    Args:
      low, low_last, low_step: first and last value of the lower bound of the ratio, and its step.
      high, high_last, high_step: the same for the upper bound.
      target: wanted quotient of pushes up and down (b).
      dual: bound of the loss where A < 0, in units of -A.
      epsilon: added to the standard deviation of a group's rewards.
      balance_epsilon: added to the pushes down.
    """
    search = balance_signs(
        Search(low, low_last, low_step), Search(high, high_last, high_step), target, balance_epsilon
    )
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[search],
            surrogate=ppo_clip(low=1 - low, high=high - 1, ratio=clamped_token_ratio, dual=dual),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    bapo,
    "BAPO: Stabilizing Off-Policy Reinforcement Learning for LLMs via Balanced Policy Optimization"
    " with Adaptive Clipping",
    "https://arxiv.org/abs/2510.18927",
    changes="surrogate",
    left_out="the replay of stale and partial rollouts that it was made for",
    reports=(
        "BP-Math on AIME24 and AIME25: 70.8 and 62.5 at 7B, 87.1 and 80.0 at 32B; stable on "
        "replayed and partial rollouts"
    ),
    traps=(
        "the lower search cannot reach its target, it runs to its end; the paper's 0.4 to 0.5 is a "
        "share, here the target is a quotient; on fresh rollouts all ratios are 1 and bounds do "
        "nothing"
    ),
)
