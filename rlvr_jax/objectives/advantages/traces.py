"""Credit of answers that were written in several rows, each with a context of its own."""

from rlvr_jax.objectives.advantages.group_relative import group_of_one_remark, rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_deviation, group_std
from rlvr_jax.objectives.statistics.traces import last_of_trace, of_last_row, trace_ids
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["trace_normalized"]


@part
def trace_normalized(epsilon: Positive = 1e-6) -> Transform:
    """A = (R - mean) / (std + ε) over the answers to a prompt, each counted once; std with n - 1.

    The reward of an answer is that of its last row; all its rows get the same advantage. Of answers
    in one row each it is `group_normalized`.

    Args:
      epsilon: ε, added to the standard deviation, outside its root.
    Source: Aghajohari et al. 2025, https://arxiv.org/abs/2510.06557.
    """

    def advantage(rollouts):
        ids = trace_ids(rollouts.trace, rollouts.rollout_id)
        last = last_of_trace(ids, rollouts.rollout_id)
        # Every row of a group is given its statistic; the last row of each answer counts in it.
        reward = of_last_row(rollouts.reward, ids, rollouts.rollout_id)
        deviation = group_deviation(reward, rollouts.group, where=last)
        return deviation / (group_std(reward, rollouts.group, where=last) + epsilon)

    return rollout_advantage(advantage, remark=group_of_one_remark)
