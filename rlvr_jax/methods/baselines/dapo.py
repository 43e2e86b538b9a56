"""DAPO: GRPO without KL, with a wider upper clip, token mean, length penalty and a group filter.

Yu et al. 2025, "DAPO", https://arxiv.org/abs/2503.14476

    R_i  = 2 · outcome_i - 1 + P(n_i), P the soft overlong penalty
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

Only groups whose outcomes differ are trained on; the filter reads the raw outcome, so an
all-correct group with unequal penalties is dropped. The authors' script also sets a dual clip of
10, which the paper does not mention; it is left out, and so is the paper's ablation of masking cut
rollouts: runs of it learn from these. Lengths are the paper's: with another token budget give
`max_length` and `cache_length`.
"""

from rlvr_jax.experience import experience, refill, shape, uniform
from rlvr_jax.objectives import (
    group_normalized,
    overlong_shaping,
    signed_outcome,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


def dapo(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    max_length: int = 20480,
    cache_length: int = 4096,
    overlong_factor: float = 1.0,
    max_rounds: int = 10,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, on groups of mixed outcomes with a penalty for length.

    Args:
      max_length: budget of response tokens (L_max).
      cache_length: last tokens of the budget, over which the penalty grows (L_cache).
      overlong_factor: penalty at the full budget.
      max_rounds: batches that are drawn at most to fill one update.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_normalized(epsilon)
        ),
        experience=experience(
            stages=[
                refill(uniform, max_rounds),
                shape(
                    overlong_shaping(max_length, cache_length, overlong_factor, base=signed_outcome)
                ),
            ]
        ),
    )


METHOD = Method(
    dapo,
    "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    "https://arxiv.org/abs/2503.14476",
    changes="surrogate, aggregation, reward, selection",
    reports=(
        "Qwen2.5-32B base on DAPO-Math-17k: 50 % on AIME 2024; without dynamic sampling and the "
        "mean over tokens 44 to 50 %"
    ),
    traps=(
        "groups are to be filtered by being right, not by the shaped reward; filtering draws "
        "more the easier or harder the prompts get; TRL's loss of that name filters nothing"
    ),
)
