"""Dr. GRPO: GRPO without the two divisions that bias it.

Liu et al. 2025, "Understanding R1-Zero-Like Training", https://arxiv.org/abs/2503.20783

    A_i  = R_i - mean
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / (B L)

L (`max_length`) is the budget of response tokens, not the padded width of a batch. The loss is also
divided by B, as in the authors' code and TRL. In verl up to version 0.7.0, it is divided only by L
and grows with the batch. A group of one has advantage 0; in verl, its reward.

Reports: Qwen2.5-Math-7B: 43.3 % on AIME 2024. Incorrect responses no longer grow in length.
Traps: The divisor must be constant. The width of a batch depends on the longest response.
"""

from rlvr_jax.objectives import clipped_objective, fixed_length_mean, group_centered
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, MaxLength


def dr_grpo(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, max_length: MaxLength = 3000
) -> Recipe:
    """Centers rewards, and divides by one constant in place of each rollout's length."""
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
    shown=LOSS_ON_BRACKETS,
)
