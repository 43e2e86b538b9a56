"""Clip_B and Clip_V: take out tokens whose push down would lower the entropy most.

"On the Entropy Dynamics in Reinforcement Fine-Tuning of Large Language Models",
https://github.com/hiyuchang/Trinity-RFT

    S_t = p_t (H_t + log p_t),  E S_t = Σ p² (H_t + log p), of the policy that sampled
    Clip_B drops tokens with A < 0 and S - mean S < -μ_B σ(S)
    Clip_V drops tokens with A ≤ 0 and E S - S > μ_V σ(E S - S), of A < 0 at most a share f
    loss = Σ_kept max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / number of kept tokens

Mean and population deviations run over the batch. They are two methods: Clip_B is the default, for
it needs nothing that the sampler does not record; for Clip_V give `batch_deviations=None,
vocabulary_deviations=8.5`, the authors' value (their class default is 2.0). Constants are those of
their example configurations, except ε, which is 0.2 here as in their framework's PPO loss.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.arguments import check_within
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.entropy_change import (
    drop_entropy_lowering,
    drop_entropy_lowering_steps,
)
from rlvr_jax.types import Method, Recipe


def entropy_dynamics(
    batch_deviations: float | None = 2.5,
    vocabulary_deviations: float | None = None,
    max_fraction: float = 1e-4,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """GRPO's advantages on the mean over the tokens that are kept.

    Args:
      batch_deviations: threshold of Clip_B in standard deviations (μ_B); None leaves it out.
      vocabulary_deviations: threshold of Clip_V (μ_V); None leaves it out.
      max_fraction: largest share of the tokens that Clip_V drops among those with A < 0 (f).
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    check_within(0, 1, "entropy_dynamics", max_fraction=max_fraction)
    drops = []
    if batch_deviations is not None:
        drops.append(drop_entropy_lowering(batch_deviations))
    if vocabulary_deviations is not None:
        drops.append(drop_entropy_lowering_steps(vocabulary_deviations, max_fraction))
    return Recipe(
        objective=objective(
            advantage=group_normalized(),
            transforms=drops,
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    entropy_dynamics,
    "On the Entropy Dynamics in Reinforcement Fine-Tuning of Large Language Models",
    "https://github.com/hiyuchang/Trinity-RFT",
    changes="mask",
    left_out="a filter of the data: pass rates in (1/16, 15/16)",
    reports=(
        "Qwen2.5-7B-Instruct: entropy stays up, mean and pass@k on AIME24, AIME25 and DAPO500 "
        "above GRPO"
    ),
    traps=(
        "small batches may have nothing beyond 2.5 deviations, and then it is GRPO; Clip_V drops "
        "tokens of A = 0 beyond its cap, too; the theory treats both signs, the code negative "
        "tokens alone"
    ),
)
