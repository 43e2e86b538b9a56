"""DSDR: reward right answers that differ, and keep entropy where they do.

"DSDR: Dual-Scale Diversity Regularization for Exploration in LLM Reasoning",
https://github.com/SUSTechBruce/DSDR

    d_i  = ½ mean (1 - cos) / 2 to the other right rows + ½ share of formulas that only row i has
    R_i  = outcome + λ_d d_i if right, else outcome;    A_i = (R_i - mean) / (std + 1e-6)
    w_i  = softmax of d_i / τ over the right rows of the group
    loss = Σ PPO clip / Σ n_i - λ_l · mean over groups of Σ_i w_i mean_t H_it

A reconstruction from the abstract and summaries. The two halves of d, the mapping of the cosine,
λ_d (a tenth of the reward gap), λ_l and τ are ours; the clip is DAPO's. In an all-right group d
alone makes the advantages, and the division by the standard deviation blows it up to full size. The
embedding is the mean hidden state of the policy, formulas are what `equations` finds: ours too.
"""

from rlvr_jax.experience import embed, experience, find_formulas, shape
from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.group_diversity import (
    diversity,
    diversity_weighted_entropy,
)
from rlvr_jax.objectives.rewards.composition import total
from rlvr_jax.objectives.shaping import plain_outcome
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.types import Method, Recipe


def dsdr(
    reward_coefficient: float = 0.1,
    entropy_coefficient: float = 0.01,
    temperature: float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    epsilon: float = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, with rewards and entropy for diversity among right rollouts.

    Args:
      reward_coefficient: of the diversity in the reward (λ_d), below the distance of right from
        wrong.
      entropy_coefficient: of the weighted entropy (λ_l).
      temperature: of the weights (τ).
      clip_low, clip_high: half-widths of the trust region.
      epsilon: added to the standard deviation of a group's rewards.
    """
    if not 0 <= reward_coefficient < 1:
        raise ValueError(f"dsdr: reward_coefficient must be in [0, 1), got {reward_coefficient}")
    reward = total(
        {"outcome": plain_outcome, "diversity": diversity}, {"diversity": reward_coefficient}
    )
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            regularizers=[diversity_weighted_entropy(entropy_coefficient, temperature)],
            aggregation=token_mean(),
        ),
        experience=experience(stages=[embed("current"), find_formulas(), shape(reward)]),
    )


METHOD = Method(
    dsdr,
    "DSDR: Dual-Scale Diversity Regularization for Exploration in LLM Reasoning",
    "https://github.com/SUSTechBruce/DSDR",
    changes="reward, regularizer",
    evidence="reconstruction",
    left_out="the encoder of the responses",
    reports="Qwen3-1.7B, mean of five sets: 36.8 (a GRPO 29.6, DAPO 32.1), by a summary page",
    traps=(
        "an all-right group trains on diversity alone, at full size; a single right row has no "
        "peer and d = 0; embeddings find nonsense far from everything, so wrong rows get none"
    ),
)
