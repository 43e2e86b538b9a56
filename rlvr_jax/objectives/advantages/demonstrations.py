"""Learning by reward where the policy succeeds, and from demonstrations where it does not.

Rows marked `off_policy` are demonstrations of their group's prompt.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.regularizers.imitation import imitate, off_policy_tokens
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_sum, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import NonNegative, NonNegativeInt
from rlvr_jax.types.parts import part

__all__ = [
    "drop_demonstrated",
    "imitate_demonstrations",
    "needs_demonstration",
    "num_solved",
    "solved_group_advantage",
]


def num_solved(rollouts: Rollouts) -> Int[Array, "B"]:
    """Number of right rollouts of the policy itself in the group of each row."""
    right = outcome_is_right(rollouts.outcome) & ~rollouts.off_policy
    return group_sum(right.astype(jnp.int32), rollouts.group)


def needs_demonstration(rollouts: Rollouts, solved: int) -> Bool[Array, "B"]:
    """Rows of groups in which the policy has solved the prompt at most `solved` times."""
    return num_solved(rollouts) <= solved


@part
def solved_group_advantage(solved: NonNegativeInt) -> Transform:
    """A_i = R_i - mean over the policy's own rollouts, in groups that it can solve; else 0.

    An own rollout that is alone in its group has no mean: its advantage is its reward.

    Args:
      solved: number of right rollouts up to which a group is not trained on by reward.
    Reads: reward, outcome, group, off_policy. Writes: advantage. Metrics: none.
    Raises:
      ValueError: a negative number.
    Source: https://github.com/TsinghuaC3I/Unify-Post-Training.
    """

    def advantage(rollouts):
        own = ~rollouts.off_policy
        alone = group_count(rollouts.group, own) == 1
        mean = group_mean(rollouts.reward, rollouts.group, where=own)
        centered = rollouts.reward - jnp.where(alone, 0, mean)
        return jnp.where(own & ~needs_demonstration(rollouts, solved), centered, 0)

    return rollout_advantage(advantage, reads={"off_policy"})


@part(reads={"off_policy"}, writes={"mask"})
def drop_demonstrated(solved: int) -> Transform:
    """Takes demonstrations, and groups the policy cannot solve, out of the loss by reward.

    Args:
      solved: as in `solved_group_advantage`.
    Reads: outcome, group, off_policy. Writes: mask.
    Metrics: demonstrated_share (of the rows with tokens, those in groups solved at most `solved`
      times).
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        failed = needs_demonstration(rollouts, solved)
        mask = signals.mask & ~(rollouts.off_policy | failed)[:, None]
        share = masked_mean(failed, has_tokens(signals.mask)).astype(signals.advantage.dtype)
        return replace(signals, mask=mask), state, {"demonstrated_share": share}

    return apply


@part
def imitate_demonstrations(coefficient: NonNegative, solved: int) -> Transform:
    """Adds c · token mean of -logp of the demonstrations of groups the policy cannot solve.

    0 where there is no such group.

    Args:
      coefficient: c, at least 0.
      solved: as in `solved_group_advantage`.
    Reads: logp, outcome, group, off_policy, the mask of the rollouts. Writes: term.
    Metrics: those of `imitate`.
    Raises:
      ValueError: a negative coefficient.
    """

    def where(rollouts):
        return off_policy_tokens(rollouts) & needs_demonstration(rollouts, solved)[:, None]

    return replace(imitate(coefficient, where, {"off_policy"}))
