"""Dr. GRPO: GRPO without the two divisions that bias it.

Liu et al. 2025, "Understanding R1-Zero-Like Training", https://arxiv.org/abs/2503.20783

    A_i  = R_i - mean
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / (B L)

L is a constant of the run, the budget of response tokens, never the padded width of a batch. Like
the authors and TRL we also divide by B. verl up to 0.7.0 divides only by L, so its loss grows with
the batch. A group of one has advantage 0; verl assigns it its reward.

Reports: Qwen2.5-Math-7B: 43.3 % on AIME 2024; incorrect responses stop growing longer
Traps: the divisor must be constant: the width of a batch depends on its longest response
"""

from rlvr_jax.objectives import clipped_objective, fixed_length_mean, group_centered
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, MaxLength


def dr_grpo(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, max_length: MaxLength = 3000
) -> Recipe:
    """Centered rewards, and one constant in place of each rollout's length."""
    aggregation = fixed_length_mean(max_length)
    return Recipe(
        clipped_objective(clip_low, clip_high, advantage=group_centered(), aggregation=aggregation)
    )


METHOD = Method(
    dr_grpo,
    "Understanding R1-Zero-Like Training: A Critical Perspective",
    "https://arxiv.org/abs/2503.20783",
    changes="advantage, aggregation",
    denominator="rows",
)
