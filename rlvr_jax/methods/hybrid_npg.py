"""HNPG: on-policy policy gradients with a critic that also learns from offline data.

"Offline Data Enhanced On-Policy Policy Gradient with Provable Guarantees",
https://github.com/YifeiZhou02/HNPG

    Â_t  = δ_t + τ Â_{t+1},  δ_t = r_t + V_{t+1} - V_t, the reward on the last token
    loss = -Σ Â ρ / number of on-policy tokens
    critic: mean_on (V - G)² + mean_off (V - (r + V_{t+1}))²

Rows that are `off_policy` train the critic alone (`hybrid_critic_loss`), whose two means count
alike: they are the worked
solutions of the prompts, one in each group. The critic's targets are those of its estimates when
the batch was drawn. Discount 1 and τ = 0.97 are the authors'. Advantages are not normalised.
"""

from rlvr_jax.experience import add_traces, experience
from rlvr_jax.objectives.advantages.hybrid_critic import hybrid_critic
from rlvr_jax.objectives.advantages.returns import generalized_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.objectives.transforms.origins import drop_off_policy
from rlvr_jax.types import Method, Recipe


def hybrid_npg(discount: float = 1.0, trace_decay: float = 0.97) -> Recipe:
    """Generalized advantages on the unclipped ratio, for the policy's own rollouts.

    Args:
      discount: of later rewards, per token.
      trace_decay: of later errors of the critic, per token (τ).
    """
    return Recipe(
        objective=objective(
            advantage=generalized_advantage(discount=discount, trace_decay=trace_decay),
            transforms=[drop_off_policy()],
            surrogate=importance_weighted(),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[add_traces()]),
        critic=hybrid_critic(discount),
    )


METHOD = Method(
    hybrid_npg,
    "Offline Data Enhanced On-Policy Policy Gradient with Provable Guarantees",
    "https://github.com/YifeiZhou02/HNPG",
    changes="advantage, mask, surrogate, guidance",
    left_out="the TRPO step (conjugate gradient, line search), a critic for every time step,"
    " and fresh actions with advantage Q - V at offline states",
    reports=(
        "combination locks with rich observations: above a hybrid method that is off-policy alone "
        "(abstract)"
    ),
    traps=(
        "no clip and no normalization, so steps scale with the rewards; worked solutions train the "
        "critic alone and are never imitated"
    ),
)
