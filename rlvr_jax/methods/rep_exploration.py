"""RepExp: responses whose representation differs from the others of their group earn a bonus.

"Representation-Based Exploration for Language Models: From Test-Time to Post-Training",
https://arxiv.org/abs/2510.11686

    f_i  = mean over the response of the last hidden states of the policy that the run began with
    b_i  = h_iᵀ (λ I + Σ_j h_j h_jᵀ)⁻¹ h_i over the group, h = f - mean f
    R_i  = outcome + β b_i in groups with a right response, else the outcome
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1;  loss = Σ PPO clip / Σ n_i

With `others` b leaves the row itself out of the matrix (the config's default; the scripts take the
form above). The authors project f to d dimensions at random first, which the Gram matrix of a group
does without. In a group that is all right the division by the deviation makes full advantages of b.
"""

from rlvr_jax.experience import embed, experience, shape
from rlvr_jax.objectives import (
    group_normalized,
    novelty_bonus,
    objective,
    ppo_clip,
    token_mean,
)
from rlvr_jax.types import Method, Recipe


def rep_exploration(
    coefficient: float = 0.01,
    ridge: float = 0.01,
    others: bool = False,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on outcomes and a bonus for what is new in the group.

    Args:
      coefficient: of the bonus (β).
      ridge: λ.
      others: the bonus leaves the row itself out of the matrix.
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[embed(), shape(novelty_bonus(coefficient, ridge, others))]),
    )


METHOD = Method(
    rep_exploration,
    "Representation-Based Exploration for Language Models: From Test-Time to Post-Training",
    "https://arxiv.org/abs/2510.11686",
    changes="reward",
    left_out="the random projection; the choice of samples at test time",
    reports="Qwen2.5-7B-Instruct, AIME24: pass@80 as GRPO's pass@256",
    traps=(
        "in all-right groups the division by the std makes unit advantages of the bonus, whatever "
        "its weight; with few wide rows every bonus is near 1 - 1/N: `others=True` spreads them"
    ),
)
