"""Implicit PRM: process rewards for free, from an outcome reward that is a log-ratio.

"Free Process Rewards without Process Labels", https://github.com/PRIME-RL/ImplicitPRM

    r(y) = β Σ_t log π(y_t) / π_ref(y_t), fitted to the outcomes of responses
    q_t  = β Σ_{i≤t} log-ratio_i        reward of a step = q at its end - q at the end before
    loss = mean over rollouts of the cross entropy of σ(r) and the outcome

The policy of this recipe is the reward model, and rollouts are its data. Token rewards, steps and
scores for best of n are functions (`token_log_ratio_reward`, `cumulative_reward`, `step_scores`,
`worst_step`). Other losses: `logistic_pairs` (DPO: only differences are fixed), `contrastive_pairs`
(NCA), `prospect` (KTO; the zero point is the mean log-ratio of the batch, where the authors' is
that of mismatched prompts and responses, and their paired variant is not here). r grows with the
length, so the cross entropy saturates on long answers.
"""

from rlvr_jax.objectives.advantages.group_relative import no_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.preferences import (
    ImplicitLoss,
    cross_entropy,
    implicit_reward_loss,
)
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import no_policy_loss
from rlvr_jax.types import Method, Recipe


def implicit_prm(scale: float = 0.05, loss: ImplicitLoss = cross_entropy) -> Recipe:
    """A reward model that is fitted to outcomes through its log-ratio to a reference.

    Args:
      scale: of the log-ratio (β).
      loss: `cross_entropy`, `logistic_pairs`, `contrastive_pairs` or `prospect`.
    """
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[implicit_reward_loss(scale, loss)],
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    implicit_prm,
    "Free Process Rewards without Process Labels",
    "https://github.com/PRIME-RL/ImplicitPRM",
    changes="surrogate",
    reports=(
        "MATH, best of n, Llama and Mistral answers: above a Math-Shepherd-like PRM on under 1/38 "
        "of its data; CE needs one response per prompt"
    ),
    traps=(
        "it fits a reward model, not who answers; r grows with the length, so long answers "
        "saturate it; pairs fix differences alone; another reference later shifts all token "
        "rewards"
    ),
)
