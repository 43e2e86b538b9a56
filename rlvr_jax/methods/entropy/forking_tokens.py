"""Forking tokens: trains only the fifth of the tokens where the policy is least certain.

Wang et al. 2025, "Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective RL for LLM
Reasoning", https://arxiv.org/abs/2506.01939

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ 1[H ≥ τ] · max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

τ is the (1 - `fraction`) quantile of the current policy's entropy H over the batch. The loss is
divided by all response tokens, as in TRL. Other implementations train the ⌊`fraction` n⌋ largest of
a micro-batch, or tokens strictly above the quantile of their response. The constants are DAPO's.

Left out: the group filter and length penalty of `dapo`, with which the paper trains.
Reports: Qwen3-32B base over DAPO: 7.71 points on AIME24 and 11.04 on AIME25. 8B: equal to DAPO.
Traps: Three readings of the quantile are in use: of the batch, of a micro-batch, of each response.
Division by the selected tokens makes the gradient five times larger.
"""

from rlvr_jax.objectives import clipped_objective, keep_top_entropy
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Share


def forking_tokens(
    fraction: Share = 0.2, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.28
) -> Recipe:
    """Applies DAPO's clip-higher loss to the tokens of highest entropy.

    Args:
      fraction: fraction of the tokens that are trained on (ρ in the paper).
    """
    return Recipe(clipped_objective(clip_low, clip_high, transforms=[keep_top_entropy(fraction)]))


METHOD = Method(
    forking_tokens, changes="weight", shown=Shown("brackets", "chosen_fraction", steps=300)
)
