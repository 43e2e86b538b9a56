"""RAPID: many off-policy steps on one big batch, with weights and baseline of the current policy.

"RAPID: An Efficient Reinforcement Learning Algorithm for Small Language Models"

    w_i  = min(π(y_i) / π_old(y_i), η), without gradient
    V(x) = mean over the group of w_i R_i,    A_i = R_i - V(x)
    loss = -mean over rollouts of w_i A_i Σ_t logp_it

Beyond η a rollout still pushes, with bounded weight; a clip would silence it. In the first update
w = 1 and it is REINFORCE with a group mean; later the mean of w is not 1, and in a group of equal
rewards A is not 0. A reconstruction from the abstract and reviews: η is theirs; that w is the ratio
of the whole rollout is ours, and so is the form per token (`per_token=True`: min(ρ_t, η) on the
token mean, with the same A). Ratios of long answers degenerate to 0 or η.
"""

from rlvr_jax.objectives.advantages.reweighted_values import (
    reweighted_advantage,
    weigh_by_rollout_ratio,
    weigh_by_token_ratio,
)
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum, token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce
from rlvr_jax.types import Method, Recipe


def rapid(cap: float = 2.0, per_token: bool = False) -> Recipe:
    """REINFORCE with capped importance weights and a reweighted baseline.

    Args:
      cap: largest weight (η).
      per_token: weights of single tokens on the token mean instead of whole rollouts.
    """
    weigh = weigh_by_token_ratio if per_token else weigh_by_rollout_ratio
    return Recipe(
        objective=objective(
            advantage=reweighted_advantage(cap),
            transforms=[weigh(cap)],
            surrogate=reinforce(corrected=True),
            aggregation=token_mean() if per_token else rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    rapid,
    "RAPID: An Efficient Reinforcement Learning Algorithm for Small Language Models",
    "",
    changes="advantage, weight, surrogate",
    evidence="reconstruction",
    left_out="sampling for many updates at once",
    reports=(
        "models of 0.5B to 1.5B on MBPP+, MATH and MiniF2F: 11 to 34 % less time at equal or "
        "better accuracy"
    ),
    traps=(
        "ratios of whole answers degenerate to 0 or the cap far beyond the 512 tokens of theirs; "
        "all-right groups have advantages after the first update; with one update a batch it is "
        "REINFORCE with a group mean"
    ),
)
