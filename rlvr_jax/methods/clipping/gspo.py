"""GSPO: one ratio for the whole response, the geometric mean of its token ratios.

Zheng et al. 2025, "Group Sequence Policy Optimization", https://arxiv.org/abs/2507.18071

    s_i  = exp((1/n_i) Σ_t (logp_it - old_logp_it))
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = mean_i max(-A s, -A clip(s, 1 - ε_low, 1 + ε_high))

This is the paper's GSPO-token: it has the value and gradient of GSPO, and advantages may vary over
a rollout. The clip acts on whole rollouts. Its half-widths are a thousandth of PPO's, because a
geometric mean changes little. They act from the second update of a batch; the paper makes four. The
mean over rollouts is the paper's; with TRL's token mean, long rollouts weigh more.

Reports: Qwen3-30B-A3B: steadier than GRPO, also for mixtures of experts, although many more tokens
are clipped (no numbers).
Traps: With PPO's half-width of 0.2, nothing is ever clipped. Rounding errors in bfloat16 are as
large as the half-widths.
"""

from rlvr_jax.objectives import clipped_objective, rollout_mean_token_mean, sequence_ratio
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


def gspo(clip_low: ClipLow = 3e-4, clip_high: ClipHigh = 4e-4, epsilon: Epsilon = 1e-6) -> Recipe:
    """Applies a clipped, length-normalized ratio of responses to group-normalized advantages."""
    objective = clipped_objective(
        clip_low,
        clip_high,
        epsilon=epsilon,
        ratio=sequence_ratio,
        aggregation=rollout_mean_token_mean(),
    )
    return Recipe(objective)


METHOD = Method(
    gspo,
    changes="surrogate",
    shown=LOSS_ON_BRACKETS,
    # The mean log ratio of some 20 tokens varies some 16 times as much as that of 5,000.
    presets={
        "brackets": {"hyperparameters": ("clip_low=0.005", "clip_high=0.0065")},
        "arithmetic:hard": {"hyperparameters": ("clip_low=0.005", "clip_high=0.0065")},
    },
)
