"""AffectGPT-R1: lists of words are paid by clusters that they hit, and each word has a price.

"AffectGPT-R1: Leveraging Reinforcement Learning for Open-Vocabulary Multimodal Emotion Recognition"

    R    = F1 of the clusters of the words - 0.1 max(0, words - reference words) + w · format
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t PPO clip

The answer stands in <answer>, words with commas between them, the reference is `Prompt.answer`;
`verifiers.texts.affectgpt_r1` says how words are read. Without the price a policy learns to list
synonyms. The paper tried three further rewards, and all five together were the worst. Its formula
for the price was not found: this one is ours, and so are w and the constants of RL (GRPO's).
"""

from collections.abc import Mapping

from rlvr_jax.experience import experience, grade_also, shape
from rlvr_jax.objectives import (
    column,
    group_normalized,
    rollout_mean_token_mean,
    total,
)
from rlvr_jax.objectives.arguments import check_at_least
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon
from rlvr_jax.verifiers.checks import Check

TEXTS = "rlvr_jax.verifiers.texts"


def affectgpt_r1(
    wheel: Mapping[str, str] | None = None,
    rate: float = 0.1,
    format_weight: float = 1.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on accuracy of a list and its format.

    Args:
      wheel: words and their clusters; others are clusters of their own.
      rate: price of each word more than there are reference words.
      format_weight: of the format (w).
    """
    check_at_least(0, "affectgpt_r1", rate=rate)
    listed = Check(
        f"{TEXTS}.affectgpt_r1:check",
        f"{TEXTS}.affectgpt_r1:extract",
        {"wheel": dict(wheel or {}), "rate": rate},
    )
    formed = Check(f"{TEXTS}.affectgpt_r1:formed")
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            stages=[
                grade_also(listed, ["reward", "f1"]),
                grade_also(formed, [], "format"),
                shape(
                    total({"accuracy": column(0), "format": column(2)}, {"format": format_weight})
                ),
            ]
        ),
    )


METHOD = Method(
    affectgpt_r1,
    "AffectGPT-R1: Leveraging Reinforcement Learning for Open-Vocabulary Multimodal Emotion"
    " Recognition",
    "",
    changes="reward",
    evidence="reconstruction",
    left_out="pictures and sound; the cold start; the rewards that did not help",
    reports=(
        "OV-MERD+ 62.5 to 66.5 with accuracy and format, 67.4 to 68.1 with prices on length; "
        "MER-UniBench 74.8 to 79.5 on the mean"
    ),
    traps=(
        "at rate 0 a list of synonyms pays; without a wheel each word is its own cluster, so "
        "synonyms miss; to think first made the authors' model worse (66.5 against 68.4)"
    ),
)
