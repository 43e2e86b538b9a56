"""PACS: the verdict is a label, and the policy's own log ratio is what predicts it.

Li et al. 2025, "Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR",
https://arxiv.org/abs/2509.02522

    r_i  = β Σ_t (logp_it - old_logp_it);  ψ_i = r_i - mean of r over the other answers
    w_i  = N / (2 N_own) in a group with right and wrong answers, 1 in others
    loss = mean_i w_i · cross-entropy(σ(ψ_i), R_i)

Gradient flows through every answer of a group. The residual σ(ψ) - R plays the critic, ∇ψ the
actor; the loss saturates where PPO would clip. On-policy ψ is 0 and a group with one outcome has
gradient 0, since the ψ of a group sum to 0. r sums over tokens: long answers have larger scores.
R is the outcome, without what shapes the reward. Answers without tokens count in no group.
β = 1 and the balance are the authors' defaults; their code sums over the padding too, whose two
log-probs it takes to be equal, and keeps groups whole within a micro-batch.
"""

from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_mean
from rlvr_jax.objectives.surrogates.outcome_classification import (
    balance_outcomes,
    outcome_classification,
    outcome_residual,
)
from rlvr_jax.types import Method, Recipe


def pacs(scale: float = 1.0, balanced: bool = True) -> Recipe:
    """The cross-entropy of outcomes and the policy's scores, as supervised learning.

    Args:
      scale: of the log ratio in the score (β).
      balanced: whether right and wrong answers to a prompt weigh the same.
    """
    return Recipe(
        objective=objective(
            advantage=outcome_residual(scale),
            transforms=[balance_outcomes()] if balanced else [],
            surrogate=outcome_classification(scale),
            aggregation=rollout_mean_token_mean(),
        )
    )


METHOD = Method(
    pacs,
    "Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR",
    "https://arxiv.org/abs/2509.02522",
    changes="advantage, weight, surrogate",
    reports="Qwen2.5-7B, AIME 2025: pass@256 59.78 %, 13.32 over PPO and 14.36 over GRPO",
    traps=(
        "no trust region: over many updates the scores grow until labels are fitted; a sum over "
        "tokens makes long answers score more; shaped rewards are not read; a group split over "
        "micro-batches is wrong"
    ),
)
