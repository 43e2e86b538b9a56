"""ROVER: make the logits the value of the uniform policy, by regression on the next token.

He et al. 2025, "Random Policy Valuation is Enough for LLM Reasoning with Verifiable Rewards",
https://github.com/tinnerhrhe/ROVER

    q_t  = ρ (logp_t - old_logp_t);  v_t = ρ (m_t - m_t^old), m the mean log-prob over V
    loss = Σ (q_t - sg(R_i - mean + v_{t+1}))² / Σ n_i

At the first update q and v are 0 and this is REINFORCE with a mean baseline; later, groups of equal
rewards still pull q towards v. ρ = 1 is the authors' default. Their scripts for mathematics pass
an advantage divided by the group's deviation: `group_normalized` in the place of `group_centered`;
paper and countdown code do not. A group of one has advantage 0 here, its reward there.
"""

from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.value_regression import uniform_value_regression
from rlvr_jax.types import Method, Recipe


def rover(scale: float = 1.0, next_scale: float = 1.0) -> Recipe:
    """Centered rewards plus the following value, fitted by the log ratio of each token.

    Args:
      scale: of the log ratio as a change of value (ρ).
      next_scale: weight of the following value.
    """
    return Recipe(
        objective=objective(
            advantage=group_centered(),
            surrogate=uniform_value_regression(scale, next_scale),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    rover,
    "Random Policy Valuation is Enough for LLM Reasoning with Verifiable Rewards",
    "https://github.com/tinnerhrhe/ROVER",
    changes="advantage, surrogate",
    left_out="the temperature at which the rollouts are drawn",
    reports=(
        "Qwen3-8B base, competition maths: 8.2 points of pass@1 and 16.8 of pass@256 over strong "
        "RL; 17.6 % more diverse"
    ),
    traps=(
        "with one update per batch it is REINFORCE with a mean baseline; later, groups of equal "
        "rewards pull towards the old policy; the KL of the released maths code reaches no "
        "gradient"
    ),
)
