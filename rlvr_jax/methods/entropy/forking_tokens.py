"""Forking tokens: train on the fifth of the tokens where the policy is least certain.

Wang et al. 2025, "Beyond the 80/20 Rule", https://arxiv.org/abs/2506.01939

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ 1[H ≥ τ] · max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

τ is the quantile of the current policy's entropy H over the batch above which the kept share lies.
Readings differ: we divide by all response tokens, as TRL does. Dividing by the kept ones
(`drop_weightless` after `keep_top_entropy`) makes the gradient five times larger; others keep the
⌊ρ n⌋ largest of a micro-batch (`masked_top_k`), or those strictly above the quantile of their
response (`above_quantile`). The paper trains with DAPO's constants, filter and length penalty; this
recipe has the constants only.
"""

from rlvr_jax.objectives import keep_top_entropy
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow
from rlvr_jax.types.parts import part


@part(writes={"mask"})
def drop_weightless() -> Transform:
    """Takes tokens of weight 0 out of the denominators too: mask' = mask ∧ (weight ≠ 0).

    After a transform that drops tokens by their weight, an average is over those that are kept.
    """

    def apply(signals, context, state):
        del context
        return replace(signals, mask=signals.mask & (signals.weight != 0)), state, {}

    return apply


def forking_tokens(
    fraction: float = 0.2, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.28
) -> Recipe:
    """DAPO's clip-higher loss on the tokens of highest entropy.

    Args:
      fraction: share of the tokens that are trained on (ρ in the paper).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, transforms=[keep_top_entropy(fraction)]
        )
    )


METHOD = Method(
    forking_tokens,
    "Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective RL for LLM Reasoning",
    "https://arxiv.org/abs/2506.01939",
    changes="weight",
    left_out="the group filter and length penalty of `dapo`, with which the paper trains",
    reports=(
        "Qwen3-32B base: 7.71 points on AIME24 and 11.04 on AIME25 over DAPO; 8B: as good as DAPO"
    ),
    traps=(
        "three readings of the quantile are in use (of the batch, of a micro-batch, of each "
        "response), and two denominators, whose gradients differ by a factor of five"
    ),
)
