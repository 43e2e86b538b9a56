"""AffectGPT-R1: rewards lists of emotion words by their clusters, with a price for each word.

"AffectGPT-R1: Leveraging Reinforcement Learning for Open-Vocabulary Multimodal Emotion Recognition"

    R    = F1 of the clusters of the words - 0.1 max(0, words - reference words) + w · format
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i (1/n_i) Σ_t PPO clip

The answer is in <answer>, words separated by commas; the reference is `Prompt.answer`.
`verifiers.texts.affectgpt_r1` defines how words are read. The paper tried three further rewards;
all five together were the worst. A reconstruction: the formula of the price was not found. The
price (`rate`), w (`format_weight`) and the constants of RL (GRPO's) are ours.

Left out: pictures and sound, as policies read text; the cold start, which is a separate run; the
rewards that did not help.
Reports: OV-MERD+: 62.5 to 66.5 with accuracy and format, 67.4 to 68.1 with prices on length. Mean
of MER-UniBench: 74.8 to 79.5.
Traps: At rate 0, a list of synonyms is rewarded. Without a wheel each word is a separate cluster,
so synonyms miss. A thought before the answer made the authors' model worse (66.5 instead of 68.4).
"""

from collections.abc import Mapping
from typing import Any

from rlvr_jax.experience import column, experience, grade_also, shape, total
from rlvr_jax.objectives import clipped_objective, rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, arguments_of
from rlvr_jax.types.hyperparameters import Finite, NonNegative
from rlvr_jax.verifiers.checks import Check

RULES = "rlvr_jax.verifiers.texts.affectgpt_r1"


@arguments_of(clipped_objective, "clip_low", "clip_high", "epsilon")
def affectgpt_r1(
    wheel: Mapping[str, str] | None = None,
    rate: NonNegative = 0.1,
    format_weight: Finite = 1.0,
    **clip: Any,
) -> Recipe:
    """Applies GRPO to the accuracy of a list and its format.

    Args:
      wheel: cluster of each word; a word without an entry is a separate cluster.
      rate: price of each word beyond the number of reference words.
      format_weight: weight of the format (w).
    """
    options = {"wheel": dict(wheel or {}), "rate": rate}
    listed = Check(f"{RULES}:check", f"{RULES}:extract", options)
    reward = {"accuracy": column(0), "format": column(3)}
    stages = [
        grade_also(listed, ["reward", "f1", "price"]),
        grade_also(Check(f"{RULES}:formed"), [], "format"),
        shape(total(reward, {"format": format_weight})),
    ]
    objective = clipped_objective(aggregation=rollout_mean_token_mean(), **clip)
    return Recipe(objective, experience(stages=stages))


METHOD = Method(
    affectgpt_r1,
    changes="reward",
    evidence="reconstruction",
    shown=Shown(
        "feelings",
        "info/price",
        without={"rate": 0},
        hyperparameters={"wheel": "rlvr_jax.tasks.sketches.words:WHEEL"},
    ),
)
