"""Advantages from the rewards of a group: one number per rollout, the same on all its tokens.

The advantage is exactly 0 in a group of equal rewards, and so in a group of one. All functions read
`rollouts.reward`, never `rollouts.outcome`.
"""

from collections.abc import Callable, Iterable

import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.objectives.algebra.parts import Transform, UpdatePlan, no_remark
from rlvr_jax.objectives.statistics.groups import (
    group_deviation,
    group_has_tokens,
    group_mean,
    group_others_mean,
    group_z_score,
)
from rlvr_jax.objectives.statistics.traces import last_of_trace, of_last_row, trace_ids
from rlvr_jax.types import Rollouts, part, replace
from rlvr_jax.types.hyperparameters import NonNegative, Positive

Statistic = Callable[..., Array]
"""A statistic of rewards: (reward [B], group [B], where=[B]) -> [B]."""


@part
def group_normalized(epsilon: Positive = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rollouts of a prompt; std divides by n - 1.

    Examples:
      >>> from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
      >>> clip = ppo_clip(0.2, 0.2)
      >>> loss = objective(group_normalized(), surrogate=clip, aggregation=token_mean())
      >>> loss.labels
      ('ppo_clip(low=0.2, high=0.2)', 'group_normalized()', 'token_mean()')

    Source: Shao et al. 2024, https://arxiv.org/abs/2402.03300.
    """

    return advantage_of_rewards(lambda reward, group: group_z_score(reward, group, epsilon))


@part
def group_centered() -> Transform:
    """A_i = R_i - mean over the rollouts of a prompt.

    Source: Liu et al. 2025, https://arxiv.org/abs/2503.20783.
    """
    return advantage_of_rewards(group_deviation)


@part
def relative_to(
    baseline: Statistic, scale: Positive | Statistic = 1.0, epsilon: NonNegative = 0.0
) -> Transform:
    """A_i = (R_i - b) / (s + ε) with any statistics b and s of the rewards.

    Args:
      baseline, scale: statistics such as `group_mean`, `batch_mean` or `batch_std`. Their `where`
        is true for the rows of groups with tokens. The scale may be a number.
      epsilon: ε, added to the scale; must be positive if the scale is a statistic (it may be 0).
    Raises:
      ValueError: epsilon is 0 and the scale is a statistic.
    """
    if callable(scale) and not epsilon:
        raise ValueError("relative_to: epsilon must be positive where scale is a statistic, got 0")

    def advantage(rollouts):
        reward, group = rollouts.reward, rollouts.group
        counted = group_has_tokens(rollouts.mask, group)
        divisor = scale(reward, group, where=counted) if callable(scale) else scale
        return (reward - baseline(reward, group, where=counted)) / (divisor + epsilon)

    compares = baseline in (group_mean, group_others_mean)
    return rollout_advantage(advantage, remark=group_of_one_remark if compares else no_remark)


@part(writes={"advantage"})
def no_advantage() -> Transform:
    """A_i = 0, for losses without rewards: only the surrogate or the regularizers act."""

    def apply(signals, context, state):
        del context
        return replace(signals, advantage=jnp.zeros_like(signals.advantage)), state, {}

    return apply


@part
def plain_reward() -> Transform:
    """A_i = R_i, without a baseline: groups of equal rewards also have a gradient."""
    return rollout_advantage(lambda rollouts: rollouts.reward)


def rollout_advantage(
    advantage: Callable[[Rollouts], Array],
    reads: Iterable[str] = (),
    remark: Callable[[UpdatePlan], str | None] = no_remark,
) -> Transform:
    """Makes an estimator of a function that returns one number per rollout, for all its tokens.

    Args:
      advantage: (rollouts) -> [B].
      reads, remark: as in `Transform`.
    Reads: those of `advantage`. Writes: advantage. Metrics: none.
    """

    def apply(signals, context, state):
        own = advantage(context.rollouts)[:, None]
        return replace(signals, advantage=jnp.where(signals.mask, own, 0)), state, {}

    return Transform(apply, reads=frozenset(reads), writes=frozenset({"advantage"}), remark=remark)


def group_of_one_remark(plan: UpdatePlan) -> str | None:
    """The remark that a run prints for groups of one rollout, which have nothing to compare."""
    if plan.group_size == 1:
        return "is 0 everywhere: a group of one has no baseline."
    return None


def advantage_of_rewards(advantage: Callable[[Array, Array], Array]) -> Transform:
    """Makes an estimator of a function of the rewards, (reward [B], group [B]) -> [B]."""
    return rollout_advantage(
        lambda rollouts: advantage(rollouts.reward, rollouts.group), remark=group_of_one_remark
    )


@part
def trace_normalized(epsilon: Positive = 1e-6) -> Transform:
    """A = (R - mean) / (std + ε) over the responses to a prompt, each counted once; std with n - 1.

    A response may be several rows. Its reward is that of its last row, and all its rows get one
    advantage. If each response is one row, the result is `group_normalized`.

    Source: Aghajohari et al. 2025, https://arxiv.org/abs/2510.06557.
    """

    def advantage(rollouts):
        ids = trace_ids(rollouts.records.get("trace"), rollouts.rollout_id)
        last = last_of_trace(ids, rollouts.rollout_id)
        # Every row of a group gets the statistic; only the last row of each response enters it.
        reward = of_last_row(rollouts.reward, ids, rollouts.rollout_id)
        return group_z_score(reward, rollouts.group, epsilon, last)

    return rollout_advantage(advantage, remark=group_of_one_remark)
