"""D³S: train on the rollouts of most varied advantage and on their telling tokens.

"Learning More with Less: A Dynamic Dual-Level Down-Sampling Framework for Efficient Policy
Optimization", second hand from https://github.com/M0rtzz/Paper-Notes

    1. of each group keep the N_s rollouts of largest variance of A: some highest, some lowest
    2. of all that are left keep N, by the same rule
    3. of their tokens keep the top share K by |A| · H
    loss = Σ max(-A ρ, -A clip(ρ, 1 ± ε)) / number of kept tokens

Advantages are GRPO's over all rollouts, and stay. H is the entropy of the policy when the token was
drawn. N_s and K grow linearly over training (`total_steps` batches, of a run its `steps`). The code
is in the paper's supplement only: N_s from half to all of a group, N = 75 % of what is left and K
from 10 % to 50 % are ours, and so is that K counts over all kept rollouts and not in each. Kept
groups no longer have mean advantage 0, and with few tokens kept a step per token is several times a
full token mean's.
"""

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import ppo_clip
from rlvr_jax.objectives.transforms.down_sampling import down_sample
from rlvr_jax.types import Method, Recipe


def d3s(
    total_steps: int = 1000,
    group_share_start: float = 0.5,
    group_share_end: float = 1.0,
    token_share_start: float = 0.1,
    token_share_end: float = 0.5,
    batch_share: float = 0.75,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on the mean over chosen tokens of chosen rollouts.

    Args:
      total_steps: over which the shares move from start to end; ours.
      group_share_start, group_share_end: rollouts kept of a group (N_s).
      token_share_start, token_share_end: tokens kept of the kept rollouts (K).
      batch_share: rollouts kept of those that their groups keep (N).
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    sampled = down_sample(
        total_steps,
        group_share=(group_share_start, group_share_end),
        token_share=(token_share_start, token_share_end),
        batch_share=batch_share,
    )
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[sampled],
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        )
    )


METHOD = Method(
    d3s,
    "Learning More with Less: A Dynamic Dual-Level Down-Sampling Framework for Efficient Policy"
    " Optimization",
    "https://github.com/M0rtzz/Paper-Notes",
    changes="mask",
    evidence="reconstruction",
    reports=(
        "Qwen2.5-Math-7B, mean of seven sets: pass@1 29.8 (GRPO) to 34.3, pass@8 53.1 to 56.8, in "
        "half the time; without its schedule GRPO passes it late"
    ),
    traps=(
        "by outcomes of 0 and 1 most rows tie and go by their order; what is kept favours the "
        "rarer side; a fifth of the tokens makes steps per token five times as large"
    ),
)
