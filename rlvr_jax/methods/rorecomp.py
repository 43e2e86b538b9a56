"""RoRecomp: short right and long wrong answers first, the others later in updates of their own.

"RoRecomp: Enhancing Reasoning Efficiency via Rollout Response Recomposition in Reinforcement
Learning", https://arxiv.org/abs/2509.25958

    A_i = (R_i - mean) / (std + 1e-6) over the whole group, std with n - 1
    priority:      of each group the ⌈α n⁺⌉ shortest right and the ⌈α n⁻⌉ longest wrong answers
    compensation:  the others, first in first out, once there are as many as a step draws
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i, over either kind in its own update

No reward for length is needed: short and right is good, long and wrong is bad. The compensation
keeps the policy from collapsing onto short answers; its rows have the old log-probs and advantages
of the step that drew them. α, the size of the buffer and the moment of a compensation are ours, and
so are advantages from before the selection.
"""

from rlvr_jax.experience import experience, recompose
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def rorecomp(
    fraction: float = 0.5, clip_low: float = 0.2, clip_high: float = 0.2, epsilon: float = 1e-6
) -> Recipe:
    """PPO's clip on the token mean, on groups that are taken apart by length.

    Args:
      fraction: of the right and of the wrong answers of a group that go first (α).
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    advantage = group_normalized(epsilon)
    return Recipe(
        objective=objective(
            advantage=advantage,
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[recompose(advantage, fraction)]),
    )


METHOD = Method(
    rorecomp,
    "RoRecomp: Enhancing Reasoning Efficiency via Rollout Response Recomposition in Reinforcement"
    " Learning",
    "https://arxiv.org/abs/2509.25958",
    changes="selection",
    evidence="reconstruction",
    left_out="a schedule of the compensation",
    reports=(
        "reasoning 27.7 % shorter from zero, tool calls 46.8 % fewer with better accuracy, up to "
        "52.5 % shorter in thinking models"
    ),
    traps=(
        "only mixed groups say anything of length; without compensation answers collapse to short "
        "ones; on the token mean long wrong answers dominate, on a mean of each they do not"
    ),
)
