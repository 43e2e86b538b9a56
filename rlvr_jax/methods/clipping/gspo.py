"""GSPO: one ratio for the whole response, the geometric mean of its token ratios.

Zheng et al. 2025, "Group Sequence Policy Optimization", https://arxiv.org/abs/2507.18071

    s_i  = exp((1/n_i) Σ_t (logp_it - old_logp_it))
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i max(-A s, -A clip(s, 1 - ε_low, 1 + ε_high))

This is the paper's GSPO-token: equal value and gradient, and the advantage may vary over a rollout.
The clip acts on whole rollouts. Its half-widths are those of a geometric mean, a thousandth of
PPO's, and act from the second update of a batch (the paper makes four). TRL's token mean weighs
long rollouts more; this is the paper's mean.

Reports: Qwen3-30B-A3B: steadier than GRPO, also with experts, although far more tokens are clipped
Traps: its bounds are a thousandth of PPO's, as a geometric mean moves little: with 0.2 nothing is
ever clipped; rounding in bfloat16 is as large as the bounds
"""

from rlvr_jax.objectives import clipped_objective, rollout_mean_token_mean, sequence_ratio
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


def gspo(clip_low: ClipLow = 3e-4, clip_high: ClipHigh = 4e-4, epsilon: Epsilon = 1e-6) -> Recipe:
    """Group-normalized advantages and a clipped, length-normalized ratio of responses."""
    objective = clipped_objective(
        clip_low,
        clip_high,
        epsilon=epsilon,
        ratio=sequence_ratio,
        aggregation=rollout_mean_token_mean(),
    )
    return Recipe(objective)


METHOD = Method(gspo, changes="surrogate")
