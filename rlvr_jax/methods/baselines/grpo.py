"""GRPO: the advantage of a rollout is its reward relative to the other answers to its prompt.

Shao et al. 2024, "DeepSeekMath", https://arxiv.org/abs/2402.03300

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + β k3(π ‖ π_ref)]

The mean over rollouts of the mean over their tokens is the paper's; verl and TRL now default to the
mean over all tokens: give `aggregation=token_mean()`. k3 is not clamped (verl cuts it at 10, and
with it the gradient of tokens that ran away). A group of one has advantage 0; verl gives it its
reward. β is the paper's 0.04; ε is not stated there, 0.2 is what both codes use.
"""

from rlvr_jax.objectives import (
    Aggregation,
    clamped_token_ratio,
    rollout_mean_token_mean,
    token_ratio,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, KLCoefficient


def grpo(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    kl_coefficient: KLCoefficient = 0.04,
    aggregation: Aggregation = rollout_mean_token_mean(),  # noqa: B008 (frozen)
    clamp_ratio: bool = False,
) -> Recipe:
    """Group-normalized advantages, a clipped ratio, and a KL to the reference.

    Args:
      aggregation: how token losses become one number.
      clamp_ratio: log ρ is clamped to ±20, so that no ratio is infinite; not of the paper.
    """
    ratio = clamped_token_ratio if clamp_ratio else token_ratio
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            ratio=ratio,
            kl_coefficient=kl_coefficient,
            aggregation=aggregation,
        )
    )


METHOD = Method(
    grpo,
    "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
    "https://arxiv.org/abs/2402.03300",
    changes="advantage, surrogate, regularizer",
    reports="DeepSeekMath-7B: GSM8K 82.9 to 88.2, MATH 46.8 to 51.7 (its abstract)",
    traps=(
        "groups of equal rewards pull by the KL alone; a group with one odd answer is blown up "
        "by 1/std; the mean over each rollout favours short right and long wrong answers"
    ),
)
