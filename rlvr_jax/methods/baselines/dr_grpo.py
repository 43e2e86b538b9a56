"""Dr. GRPO: GRPO without the two divisions that bias it.

Liu et al. 2025, "Understanding R1-Zero-Like Training", https://arxiv.org/abs/2503.20783

    A_i  = R_i - mean
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / (B L)

L is a constant of the run, the budget of response tokens, never the padded width of a batch. As the
authors and TRL do, we divide by B too; verl up to 0.7.0 divides by L alone, so that its loss grows
with the batch. A group of one has advantage 0; verl gives it its reward.
"""

from rlvr_jax.objectives import fixed_length_mean, group_centered
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow


def dr_grpo(clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.2, max_length: int = 3000) -> Recipe:
    """Centered rewards, and one constant in place of each rollout's length.

    Args:
      max_length: budget of response tokens (L).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_centered(),
            aggregation=fixed_length_mean(max_length),
        )
    )


METHOD = Method(
    dr_grpo,
    "Understanding R1-Zero-Like Training: A Critical Perspective",
    "https://arxiv.org/abs/2503.20783",
    changes="advantage, aggregation",
    denominator="rows",
    reports="Qwen2.5-Math-7B: 43.3 % on AIME 2024; wrong answers stop growing longer",
    traps=(
        "the length that it divides by must be constant: the width of the batch would make "
        "steps depend on its longest answer"
    ),
)
