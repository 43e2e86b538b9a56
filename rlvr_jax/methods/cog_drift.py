"""Cog-DRIFT: problems that nobody solves are asked in easier forms first, each at its own level.

"Cog-DRIFT: Exploration on Adaptively Reformulated Instances Enables Learning from Hard Reasoning
Problems", https://github.com/dinobby/Cog-DRIFT

    four options < ten options < a gap to fill < the problem itself, all with the same answer
    R    = correct + 0.2 format
    up   if the mean reward of the group is above τ, to the next form that there is, for good
    loss = PPO's clip-higher + 0.01 k3(π ‖ π_ref), A of the group

The threshold is applied to the reward with the bonus: with perfect format τ = 0.5 is an accuracy
above 0.3, and guessing among four options earns 0.45. The variants belong to the prompts
(`Prompt.meta["variants"]`, as `arithmetic_forms` has them); options are shuffled at every visit.
`weights` are those of the task's rewards, accuracy and format. The token mean is ours.
"""

from collections.abc import Sequence

from rlvr_jax.experience import climb_formats, experience, shape, shuffled_epochs
from rlvr_jax.objectives import (
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    token_mean,
    weighted,
)
from rlvr_jax.types import Method, Recipe


def cog_drift(
    formats: Sequence[str] = ("four_choice", "ten_choice", "fill_in"),
    threshold: float = 0.5,
    window: int = 1,
    weights: Sequence[float] = (1.0, 0.2),
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    kl_coefficient: float = 0.01,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on every prompt in the easiest form that it has not yet outgrown.

    Args:
      formats: of the variants, the easiest first.
      threshold: mean reward above which a prompt goes up (τ).
      window: visits that the mean is over (w).
      weights: of the task's rewards: accuracy, format.
      clip_low, clip_high: half-widths of the trust region.
      kl_coefficient: weight of the KL; with 0 no reference is needed.
      epsilon: added to the standard deviation of a group's rewards.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=token_mean(),
        ),
        experience=experience(
            [shuffled_epochs(), climb_formats(formats, threshold, window)],
            stages=[shape(weighted(weights), rewards=len(weights))],
        ),
    )


METHOD = Method(
    cog_drift,
    "Cog-DRIFT: Exploration on Adaptively Reformulated Instances Enables Learning from Hard"
    " Reasoning Problems",
    "https://github.com/dinobby/Cog-DRIFT",
    changes="curriculum, reward",
    left_out="writing and filtering the variants by another model",
    reports=(
        "problems unsolved before: 10.11 points (Qwen3-4B-Instruct) and 8.64 (Llama); mean of six "
        "benchmarks 4.72 and 3.23 over the second best"
    ),
    traps=(
        "a prompt without variants in `Prompt.meta` is asked as it is; at window 1 one lucky group "
        "moves a prompt up for good; τ counts the format's bonus, so it is an accuracy of 0.3"
    ),
)
