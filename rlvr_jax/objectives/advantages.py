"""Advantages from the rewards of a group: one number per rollout, the same on all its tokens.

In a group of one there is nothing to compare with, and the advantage is 0. Groups of equal rewards
get exactly 0. `rollouts.reward` is read, never `rollouts.outcome`.
"""

import jax.numpy as jnp

from rlvr_jax.objectives.core import Transform, describe, stateless
from rlvr_jax.objectives.groups import group_mean, group_others_mean, group_std
from rlvr_jax.types import replace

__all__ = ["group_centered", "group_normalized", "leave_one_out"]


def group_normalized(epsilon: float = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rollouts of a prompt; std divides by n - 1.

    Args:
      epsilon: ε, added to the standard deviation, outside its root.
    Reads: reward, group. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    Source: Shao et al. 2024, https://arxiv.org/abs/2402.03300.
    """
    if not epsilon > 0:
        raise ValueError(f"group_normalized: epsilon must be positive, got {epsilon}")

    def advantage(reward, group):
        return (reward - group_mean(reward, group)) / (group_std(reward, group) + epsilon)

    return _from_rewards(advantage, describe("group_normalized", epsilon=epsilon))


def group_centered() -> Transform:
    """A_i = R_i - mean over the rollouts of a prompt.

    Reads: reward, group. Writes: advantage. Metrics: none.
    Source: Liu et al. 2025, https://arxiv.org/abs/2503.20783.
    """
    return _from_rewards(
        lambda reward, group: reward - group_mean(reward, group), "group_centered()"
    )


def leave_one_out() -> Transform:
    """A_i = R_i - mean over the other rollouts of the prompt.

    N / (N - 1) times `group_centered`; the baseline does not depend on the own reward, so the
    policy gradient is unbiased.
    Reads: reward, group. Writes: advantage. Metrics: none.
    Source: Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740.
    """

    def advantage(reward, group):
        return reward - group_others_mean(reward, group)

    return _from_rewards(advantage, "leave_one_out()")


def _from_rewards(advantage, label):
    def apply(signals, context, state):
        rollouts = context.rollouts
        own = advantage(rollouts.reward, rollouts.group)[:, None]
        return replace(signals, advantage=jnp.where(signals.mask, own, 0)), state, {}

    def remark(plan):
        if plan.group_size == 1:
            return f"{label} is 0 everywhere: a group of one has no baseline."
        return None

    return stateless(apply, label=label, remark=remark)
