"""CAPO: leave out the tokens on which a step is predicted to go too far.

Melo et al. 2025, "Stabilizing Policy Gradients for Sample-Efficient Reinforcement Learning in LLM
Reasoning", https://arxiv.org/abs/2510.00819

    A_i  = (R_i - mean) / (std + 1e-4), std with n - 1
    kept = tokens with |m_H| < δ_H and m_F < δ_F
    loss = (1/B) Σ_i Σ_{t kept} max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / max(1, kept tokens of i)

m_H and m_F predict from the last layer what a step would do to the objective and to the policy
(`rlvr_jax.objectives.transforms.curvature`). Limits are those of the authors for GRPO's advantages;
Dr. CAPO has δ_F = 1e-3 and δ_H = 5e-4 and divides by B L (`fixed_length_mean`). The learning rate
is their aggressive 1.5e-5. The prediction is that of plain gradient descent; their code can also go
through Adam's moments of the last layer.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.algebra.parts import Aggregation
from rlvr_jax.objectives.surrogates.aggregations import row_mean_token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.curvature import drop_unstable_steps
from rlvr_jax.types import Method, Recipe


def capo_curvature(
    change_limit: float = 0.01,
    shift_limit: float = 1e-4,
    learning_rate: float = 1.5e-5,
    top_k: int = 50,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-4,
    symmetric: bool = True,
    aggregation: Aggregation = row_mean_token_mean(),  # noqa: B008 (frozen)
) -> Recipe:
    """GRPO's loss on the tokens whose predicted step stays small.

    Args:
      change_limit: largest predicted change of the objective, of either sign (δ_H).
      shift_limit: largest predicted shift of the policy (δ_F).
      learning_rate: of the optimizer.
      top_k: how many of the largest log-probs stand for the policy.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
      symmetric: False takes out every token whose step would lower the objective.
      aggregation: how token losses become one number.
    """
    stable = drop_unstable_steps(change_limit, shift_limit, learning_rate, top_k, symmetric)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[stable],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=aggregation,
        )
    )


METHOD = Method(
    capo_curvature,
    "Stabilizing Policy Gradients for Sample-Efficient Reinforcement Learning in LLM Reasoning",
    "https://arxiv.org/abs/2510.00819",
    changes="mask",
    left_out="sampling with the same top-k; the optimizer's own step (Adam's moments, the scheduled"
    " learning rate) in the prediction, and masks of whole rollouts and batches",
    reports=(
        "Qwen2.5-Math-7B on MATH: stable at rates where GRPO collapses, under 8 % of tokens left "
        "out; up to 30 times fewer samples"
    ),
    traps=(
        "limits fit their learning rate and advantage: at a smaller rate nothing is left out; "
        "`learning_rate` does not follow a warm-up; A = 0 is always kept and counts in the "
        "denominator"
    ),
)
