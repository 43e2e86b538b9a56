"""CoPG: a policy gradient for rollouts of any origin, with the other answers as baseline.

Flet-Berliac et al. 2024, "Contrastive Policy Gradient", https://arxiv.org/abs/2406.19185

    R_β(y) = R - β Σ_t (logp - reference_logp)
    c_i    = R_β(y_i) - mean of R_β over the other answers to the prompt, without gradient
    loss   = -mean_i c_i Σ_t logp_it

Where KL-regularized RL is solved, R_β is one constant per prompt; the loss pulls each pair of
answers to it. It has the gradient of the mean of (R_β(y) - R_β(y'))² / (4 β) over pairs, which is
`pairwise_regression(β)`, and needs neither ratio nor clip. Equal rewards still pull the answers to
equal log ratios; a group of one gives 0. Reconstructed from the abstract and the known form of the
method; β = 0.1 is ours, and sums over tokens want it smaller for long responses.
"""

from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.objectives.surrogates.sequence_regression import regularized_leave_one_out
from rlvr_jax.types import Method, Recipe


def copg(kl_coefficient: float = 0.1) -> Recipe:
    """Leave-one-out advantages of the regularized return times the log-prob of the response.

    Args:
      kl_coefficient: weight of the log ratio to the reference in the return (β).
    """
    return Recipe(
        objective=objective(
            advantage=regularized_leave_one_out(kl_coefficient),
            surrogate=reinforce(corrected=True),
            aggregation=rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    copg,
    "Contrastive Policy Gradient: Aligning LLMs on sequence-level scores in a supervised-friendly"
    " fashion",
    "https://arxiv.org/abs/2406.19185",
    changes="advantage, surrogate, regularizer",
    evidence="reconstruction",
    reports=(
        "IPO and the policy gradient are special cases; tried on a bandit and on summaries with a "
        "learned reward (abstract)"
    ),
    traps=(
        "equal rewards still pull answers together; log ratios are sums, so β must shrink with the "
        "length; old data with large log ratios decide, as nothing is clipped; one answer per "
        "prompt gives 0"
    ),
)
