"""Advantage alignment: an agent that did well so far favours what is good for the other one.

"Learning Robust Social Strategies with Large Language Models", after the released code of
https://github.com/jduquevan/advantage-alignment

    A'_t = A_t + w (1/t) Σ_{s < t} A_s · A^other_t
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

A are generalized advantages, whitened over the batch; a column of the arrays is a turn, and two
rows of a group are the agents of a game. Constants are those of the released code. Its paper writes
β γ Σ γ^{t-s} A_s in place of the mean (`aligned_with_partner(…, discount=γ)`). The language-model
paper replaces the critic by a mean over parallel games, for which we take `leave_one_out()`; its
exact form was not found.
"""

from rlvr_jax.objectives.advantages.reciprocity import aligned_with_partner
from rlvr_jax.objectives.advantages.returns import generalized_advantage
from rlvr_jax.objectives.advantages.whitening import whitened
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def social_rl(
    weight: float = 1.0,
    discount: float = 0.99,
    trace_decay: float = 0.95,
    clip_low: float = 0.1,
    clip_high: float = 0.1,
) -> Recipe:
    """Whitened advantages plus the product of the own past and the other's present ones.

    Args:
      weight: of the product (w).
      discount, trace_decay: of the generalized advantages, per turn (γ, λ).
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    estimator = whitened(generalized_advantage(discount, trace_decay))
    return Recipe(
        objective=objective(
            advantage=aligned_with_partner(estimator, weight),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    social_rl,
    "Learning Robust Social Strategies with Large Language Models",
    "https://github.com/jduquevan/advantage-alignment",
    changes="advantage",
    evidence="reconstruction",
    left_out="rollouts of several agents, rewards of single turns, turns of many tokens, rewards"
    " for listening and speaking",
)
