"""Advantage alignment: an agent that did well so far favours what is good for the other one.

"Learning Robust Social Strategies with Large Language Models", after the released code of
https://github.com/jduquevan/advantage-alignment

    Â_n  = δ_n + γλ Â_{n+1}, δ_n = r_n + γ V_{n+1} - V_n, over the turns of an agent
    A'_n = A_n + w (1/n) Σ_{m < n} A_m · A^other_n, A the whitened Â, n from 0
    loss = Σ max(-A' ρ, -A' clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

The task's environment is a game, whose two players are neighbouring rows of a group and have the
same weights: one policy is trained, on both sides, with the moves of the other side as context. A
turn is all tokens of one move, r_n what the game pays for it; V_n is the critic's value of its
first token. Advantages are whitened over tokens. Constants are those of the released code, whose
turns are single actions. Its paper writes β γ Σ γ^{n-m} A_m in place of the mean
(`aligned_with_partner(…, discount=γ)`). The language-model paper replaces the critic by a mean over
parallel games, for which we have `leave_one_out()`; its exact form was not found.
"""

from rlvr_jax.experience import experience, turns
from rlvr_jax.objectives.advantages.critics import critic_of
from rlvr_jax.objectives.advantages.reciprocity import aligned_with_partner
from rlvr_jax.objectives.advantages.turn_credit import generalized_turn_advantage, turn_values
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
    max_turns: int = 16,
    reply_tokens: int = 64,
    value_clip: float = 0.2,
) -> Recipe:
    """Whitened advantages plus the product of the own past and the other's present ones.

    Args:
      weight: of the product (w).
      discount, trace_decay: of the generalized advantages, per turn (γ, λ).
      clip_low, clip_high: half-widths of the trust region (ε).
      max_turns: replies to a player at most.
      reply_tokens: of a reply at most.
      value_clip: half-width of the critic's trust region.
    """
    estimator = generalized_turn_advantage(discount, trace_decay)
    return Recipe(
        objective=objective(
            advantage=aligned_with_partner(whitened(estimator), weight, ids="turn"),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(draw=turns(limit=max_turns, reply_tokens=reply_tokens)),
        critic=critic_of(estimator, value_clip, turn_values),
    )


METHOD = Method(
    social_rl,
    "Learning Robust Social Strategies with Large Language Models",
    "https://github.com/jduquevan/advantage-alignment",
    changes="sampling, advantage",
    evidence="reconstruction",
    left_out="players of different weights; rewards for listening and speaking",
    reports=(
        "higher joint payoff and no exploitation by greedy agents in social dilemmas "
        "(Trust-and-Split)"
    ),
    traps=(
        "products of whitened advantages have heavy tails; with rewards summed over players it is "
        "cooperation by decree; the released form takes a mean over past turns, its paper a "
        "discounted sum"
    ),
)
