"""Variance-aware sampling: prompts whose answers vary are drawn more often.

"MMR1: Enhancing Multimodal Reasoning with Variance-Aware Sampling and Open Resources",
https://github.com/LengSicong/MMR1

    VPS(x) = α P (1 - P) + β TDS, P the pass rate of x, TDS the share of distinct 3-grams
    batch  = ⌊λB⌋ prompts drawn with replacement ∝ VPS, the others from a shuffled pass
    loss   = mean_i (1/n_i) Σ_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + 0.01 k3(π ‖ π_ref)]

The expected gradient of a prompt vanishes with the variance of its rewards. The paper rates all
prompts every T_u steps with N answers; that is as dear as training, so here `rated` of them are
(those not visited for longest), and training's own answers score the others. A prompt without a
score yet has the mean of all.

The weights are the paper's. The authors' code scales scores by `min_max`, which gives the least one
exactly 0, has the outcome variance alone (`diversity_weight=0`), N = 8 and counts n-grams of
padding, too; here only tokens of the answers count.
"""

from collections.abc import Callable

import numpy as np

from rlvr_jax.experience import experience, variance_promotion
from rlvr_jax.experience.curricula.diversity import Diversity, distinct_ngrams
from rlvr_jax.experience.curricula.variance import as_they_are
from rlvr_jax.objectives import (
    group_normalized,
    kl_penalty,
    objective,
    ppo_clip,
    rollout_mean_token_mean,
)
from rlvr_jax.types import Method, Recipe


def mmr1_vas(
    share: float = 0.5,
    outcome_weight: float = 0.8,
    diversity_weight: float = 0.2,
    refresh: int = 351,
    rated: int = 64,
    rating_samples: int = 32,
    diversity: Diversity = distinct_ngrams,
    scale: Callable[[np.ndarray], np.ndarray] = as_they_are,
    momentum: float = 0.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    kl_coefficient: float = 0.01,
) -> Recipe:
    """GRPO on prompts that are drawn by the variance of their answers.

    Args:
      share: of the batch that is drawn by weight (λ).
      outcome_weight, diversity_weight: of the score's two terms (α, β).
      refresh: steps between two ratings (T_u).
      rated: prompts of each; ours, where the paper rates all.
      rating_samples: answers to each of them (N).
      diversity: of the answers to a prompt (TDS), `distinct_ngrams` or `edit_distance`, which is in
        tokens and needs a smaller β.
      scale: of scores, `as_they_are` or `min_max`.
      momentum: of the weights (μ).
      clip_low, clip_high: half-widths of the trust region (ε).
      kl_coefficient: weight of the KL; with 0 no reference is needed.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[kl_penalty(kl_coefficient)] if kl_coefficient else [],
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            curriculum=variance_promotion(
                share,
                outcome_weight,
                diversity_weight,
                refresh,
                rated,
                rating_samples,
                diversity,
                scale,
                momentum,
            )
        ),
    )


METHOD = Method(
    mmr1_vas,
    "MMR1: Enhancing Multimodal Reasoning with Variance-Aware Sampling and Open Resources",
    "https://github.com/LengSicong/MMR1",
    changes="curriculum",
    left_out="ratings of all prompts",
    reports=(
        "on Qwen2.5-VL-7B: 58.4 on average over their multimodal maths sets; faster than uniform "
        "draws"
    ),
    traps=(
        "the authors' code scores pass rates alone with 8 answers and gives the worst prompt "
        "weight 0; momentum of 1 freezes weights; an edit distance in tokens drowns the pass rate "
        "unless its weight is small"
    ),
)
