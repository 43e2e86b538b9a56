"""Overlong shaping: a soft penalty on the last tokens of the budget, or no loss for truncated ones.

"DAPO: soft overlong punishment and overlong filtering", https://arxiv.org/abs/2503.14476

    R_i  = outcome_i + P(n_i),  P = -f clip((n - (L_max - L_cache)) / L_cache, 0, 1)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip / Σ n_i

P is bounded by -f, as in the paper and TRL; verl's is not, which is equal up to L_max. `filtered`
takes truncated responses out of the loss and its denominators, not out of the group's mean.

Reports: in DAPO's table of steps, AIME 2024: the filter 36 to 38, the soft penalty 41 to 42
Traps: with the defaults budgets to 16384 have no penalty; all-correct groups learn only from length
"""

from typing import Any

from rlvr_jax.experience import experience, mask_truncated, overlong_excess, shape, total
from rlvr_jax.experience.rewards.outcomes import plain_outcome
from rlvr_jax.objectives import clipped_objective
from rlvr_jax.types import Method, Recipe, arguments_of
from rlvr_jax.types.hyperparameters import CacheLength, MaxLength, OverlongFactor


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def overlong_shaping(
    max_length: MaxLength = 20480,
    cache_length: CacheLength = 4096,
    factor: OverlongFactor = 1.0,
    filtered: bool = False,
    **clip: Any,
) -> Recipe:
    """GRPO on the token mean, on outcomes with a penalty for the end of the budget."""
    penalty = overlong_excess(max_length, cache_length, factor)
    stages = [shape(total({"outcome": plain_outcome, "overlong": penalty}))]
    stages += [mask_truncated()] if filtered else []
    return Recipe(clipped_objective(**clip), experience(stages=stages))


METHOD = Method(overlong_shaping, changes="reward")
