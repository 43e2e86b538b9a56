"""Overlong shaping: a soft penalty on the last tokens of the budget, or no loss for truncated ones.

Yu et al. 2025, "DAPO", https://arxiv.org/abs/2503.14476

    R_i  = outcome_i + P(n_i),  P = -f clip((n - (L_max - L_cache)) / L_cache, 0, 1)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip / Σ n_i

P is bounded by -f, as in the paper and TRL. verl leaves it unbounded, which is equal as long as no
response exceeds L_max. A response that ends at exactly L_max tokens has the full penalty. With
`filtered` truncated responses also leave the loss and its denominators; their rewards stay in the
group's mean, as in TRL. A factor of 0 leaves only the filter. In an all-correct group only P makes
the advantages. The clip is GRPO's.

Reports: in DAPO's table of steps, AIME 2024: the filter 36 to 38, the soft penalty 41 to 42
Traps: at the default of 20480 tokens a short budget has no penalty; all-correct groups learn only
from length; a response that ends on the last token has the full penalty; verl bounds the penalty
only by the budget
"""

from rlvr_jax.experience import experience, mask_truncated, shape, total
from rlvr_jax.experience.rewards.outcomes import overlong_excess, plain_outcome
from rlvr_jax.objectives import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import (
    CacheLength,
    ClipHigh,
    ClipLow,
    Epsilon,
    MaxLength,
    NonNegative,
)


def overlong_shaping(
    max_length: MaxLength = 20480,
    cache_length: CacheLength = 4096,
    factor: NonNegative = 1.0,
    filtered: bool = False,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on the token mean, on outcomes with a penalty for the end of the budget.

    Args:
      factor: the full penalty (f).
      filtered: truncated responses leave the loss.
    """
    penalty = overlong_excess(max_length, cache_length, factor)
    stages = [shape(total({"outcome": plain_outcome, "overlong": penalty}))]
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(stages=[*stages, mask_truncated()] if filtered else stages),
    )


METHOD = Method(
    overlong_shaping,
    "DAPO: soft overlong punishment and overlong filtering",
    "https://arxiv.org/abs/2503.14476",
    changes="reward",
)
