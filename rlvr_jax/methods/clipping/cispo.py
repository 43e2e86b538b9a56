"""CISPO: caps the importance weight, and trains every token.

MiniMax 2025, "MiniMax-M1", https://arxiv.org/abs/2506.13585

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = -Σ sg(clip(ρ, 1 - ε_low, 1 + ε_high)) A logp / Σ n_i

Inside the bounds the gradient is that of the unclipped loss -A ρ. Outside them, the weight is the
bound. PPO's clip would stop the token there (A > 0) or leave its weight unbounded (A < 0). The
paper tunes only the upper bound and prints no value. The value 0.2 is that of verl's example, which
also has no lower bound. TRL's `epsilon_high` is the cap itself, 1 + ε_high.

Left out: the group filter and length penalty of `dapo`, which the paper adds.
Reports: Qwen2.5-32B: equal to DAPO on AIME24 in about half the steps.
Traps: Where PPO stops raising a token, CISPO continues with a capped weight. The loss value has no
meaning.
"""

from rlvr_jax.objectives import group_normalized, objective, token_mean, weighted_reinforce
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


def cispo(clip_low: ClipLow = 1.0, clip_high: ClipHigh = 0.2, epsilon: Epsilon = 1e-6) -> Recipe:
    """Applies the policy gradient with the token mean and capped importance weights."""
    advantage = group_normalized(epsilon)
    surrogate = weighted_reinforce(low=clip_low, high=clip_high)
    return Recipe(objective(advantage=advantage, surrogate=surrogate, aggregation=token_mean()))


METHOD = Method(
    cispo,
    "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention",
    "https://arxiv.org/abs/2506.13585",
    changes="surrogate, aggregation",
    gradient="stopped",
    shown=LOSS_ON_BRACKETS,
)
