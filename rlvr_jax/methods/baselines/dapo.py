"""DAPO: GRPO without KL, with a wider upper clip, token mean, length penalty and a group filter.

"DAPO: An Open-Source LLM Reinforcement Learning System at Scale", https://arxiv.org/abs/2503.14476

    R_i  = 2 · outcome_i - 1 + P(n_i), P the soft overlong penalty
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

Only groups whose outcomes differ are trained on. The filter reads the outcome without the penalty,
so it drops an all-correct group with unequal penalties. For another budget, set `max_length` and
`cache_length`.

Left out: the dual clip of 10 of the authors' script; the ablation that masks truncated rollouts.
Reports: Qwen2.5-32B base on DAPO-Math-17k: AIME 2024 50 %. Dynamic sampling and the token mean
raise it from 44 to 50 %.
Traps: If prompts are very easy or very hard, more batches are sampled per update. TRL's loss of
this name has no filter.
"""

from typing import Any

from rlvr_jax.experience import experience, overlong_shaping, refill, shape, signed_outcome, uniform
from rlvr_jax.objectives import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import CacheLength, MaxLength, MaxRounds, OverlongFactor


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon", clip_high=0.28)
def dapo(
    max_length: MaxLength = 20480,
    cache_length: CacheLength = 4096,
    overlong_factor: OverlongFactor = 1.0,
    max_rounds: MaxRounds = 10,
    **clip: Any,
) -> Recipe:
    """Applies clip-higher with the token mean to groups of mixed outcomes, penalized for length."""
    reward = overlong_shaping(max_length, cache_length, overlong_factor, base=signed_outcome)
    stages = [refill(uniform, max_rounds), shape(reward)]
    return Recipe(clipped_objective(**clip), experience(stages=stages))


METHOD = Method(
    dapo,
    changes="surrogate, aggregation, reward, selection",
    shown=Shown("brackets", "experience/refill/dropped_groups", steps=300),
    presets={
        # Its authors sample up to ten batches a step. Its penalty of truncated rollouts is learned.
        "": {"hyperparameters": ("max_rounds=3",), "mask_truncated": False},
        # Two attempts fill the budget exactly: a penalty for length would punish the second one.
        "brackets": {"hyperparameters": ("overlong_factor=0", "max_rounds=3")},
    },
)
