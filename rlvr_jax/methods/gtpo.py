"""GTPO: spare the tokens that right and wrong answers share, and charge rollouts for entropy.

"GTPO: Trajectory-Based Policy Optimization in Large Language Models",
https://github.com/winstonsmith1897/GTPO

    A_i  = R_i - mean;  A'_i = A_i - c H̄_i, 0 if H̄_i > θ
    loss = -mean_i (1/n_i) Σ_t λ_it A'_i logp_it

λ is 2 in rollouts with A > 0 and 0 in those with A < 0, for tokens of the unbroken opening that
rollouts of both signs have in common, and once more for the common ending; 1 elsewhere. H̄ is the
mean entropy of the rollout. No reference, no ratio: one update per batch. In groups of equal
rewards A' = -c H̄: every rollout is pushed down, right ones too. Constants are those of the
authors' README (their code has 0.7 for ln 2). The filter is for models whose entropy starts below
θ: above it every rollout is dropped and nothing is learned (`entropy_threshold=inf` for those).
Their released loss also divides each rollout by the length of its longer stretch in conflict: put
`divide_by_conflicts` after `weigh_conflicts`.
"""

import math

from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.ratios import on_policy_ratio
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.objectives.transforms.conflicts import weigh_conflicts
from rlvr_jax.objectives.transforms.entropy_credit import charge_mean_entropy
from rlvr_jax.types import Method, Recipe


def gtpo(
    positive_weight: float = 2.0,
    negative_weight: float = 0.0,
    entropy_threshold: float = math.log(2),
    entropy_coefficient: float = 0.1,
) -> Recipe:
    """Centered rewards on the policy gradient, with weights for shared tokens.

    Args:
      positive_weight, negative_weight: of tokens in conflict, by the sign of the advantage (λ).
      entropy_threshold: mean entropy, nats, above which a rollout is dropped (θ).
      entropy_coefficient: price of a nat of mean entropy (c).
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            transforms=[
                weigh_conflicts(positive_weight, negative_weight),
                charge_mean_entropy(entropy_threshold, entropy_coefficient),
            ],
            surrogate=importance_weighted(ratio=on_policy_ratio),
            aggregation=rollout_mean_token_mean(),
        )
    )


METHOD = Method(
    gtpo,
    "GTPO: Trajectory-Based Policy Optimization in Large Language Models",
    "https://github.com/winstonsmith1897/GTPO",
    changes="advantage, weight, surrogate",
    reports=(
        "Llama 8B and Qwen2.5-3B on GSM8K, MATH, AIME 2024: more stable than GRPO and SFT, without "
        "KL or reference (figures)"
    ),
    traps=(
        "a policy of more than ln 2 nats learns nothing; groups of equal rewards are pushed down, "
        "right ones too; the GTPO of 2508.04349 is another method; one update per batch"
    ),
)
