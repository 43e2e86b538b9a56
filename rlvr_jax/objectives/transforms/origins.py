"""Batches with rows that another policy wrote: who is compared, trained on, and held on to."""

import jax.numpy as jnp

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform, describe, stateless
from rlvr_jax.objectives.arguments import check_at_least, check_positive
from rlvr_jax.objectives.statistics.divergences import Divergence
from rlvr_jax.objectives.statistics.groups import (
    group_count,
    group_deviation,
    group_mean,
    group_std,
)
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace

__all__ = [
    "drop_off_policy",
    "off_policy_divergence",
    "on_policy_normalized",
    "relative_to_own_rows",
]


def on_policy_normalized(epsilon: float = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the group's own rollouts; 0 on rows of another policy.

    Args:
      epsilon: ε, added to the standard deviation (n - 1), outside its root.
    Reads: reward, group, off_policy. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    """
    check_positive("on_policy_normalized", epsilon=epsilon)

    def advantage(rollouts):
        reward, group, own = rollouts.reward, rollouts.group, ~rollouts.off_policy
        centered = group_deviation(reward, group, where=own)
        scaled = centered / (group_std(reward, group, where=own) + epsilon)
        return jnp.where(own, scaled, 0)

    label = describe("on_policy_normalized", epsilon=epsilon)
    return rollout_advantage(advantage, label, needs={"off_policy"})


def relative_to_own_rows(epsilon: float = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) for all rows, mean and std of the policy's own in the group.

    The scale is 1 + ε where own rows do not differ; an own row that is alone in its group is its
    own measure: mean 0, std 1.

    Args:
      epsilon: ε, added to the standard deviation (n - 1), outside its root.
    Reads: reward, group, off_policy. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    Source: "grpo_split" of LUFFY, https://github.com/ElliottYan/LUFFY.
    """
    check_positive("relative_to_own_rows", epsilon=epsilon)

    def advantage(rollouts):
        reward, group, own = rollouts.reward, rollouts.group, ~rollouts.off_policy
        alone = group_count(group, own) <= 1
        spread = group_std(reward, group, where=own)
        scale = jnp.where(alone | (spread == 0), 1, spread) + epsilon
        return (reward - jnp.where(alone, 0, group_mean(reward, group, where=own))) / scale

    label = describe("relative_to_own_rows", epsilon=epsilon)
    return rollout_advantage(advantage, label, needs={"off_policy"})


def drop_off_policy() -> Transform:
    """Takes the rows of another policy out of the loss and out of its denominators.

    Reads: off_policy. Writes: mask. Metrics: none.
    """

    def apply(signals, context, state):
        mask = signals.mask & ~context.rollouts.off_policy[:, None]
        return replace(signals, mask=mask), state, {}

    return stateless(apply, needs={"off_policy"}, label="drop_off_policy()")


def off_policy_divergence(coefficient: float, divergence: Divergence) -> Transform:
    """Adds c · mean of a divergence over the tokens that another policy wrote; 0 without any.

    `reference_logp` is what the policy that wrote them gave them, stored with the data.

    Args:
      coefficient: c, at least 0.
      divergence: one of `rlvr_jax.objectives.statistics.f_divergences`.
    Reads: logp, old_logp, reference_logp, off_policy, the mask of the rollouts. Writes: term.
    Metrics: off_policy_divergence/<divergence>, the mean.
    Raises:
      ValueError: a negative coefficient.
    """
    check_at_least(0, "off_policy_divergence", coefficient=coefficient)

    def apply(signals, context, state):
        rollouts = context.rollouts
        written = rollouts.mask & rollouts.off_policy[:, None]
        values = divergence(context.stats.logp, rollouts.reference_logp, context.old_logp)
        mean = masked_mean(values, written)
        signals = replace(signals, term=signals.term + coefficient * mean)
        return signals, state, {f"off_policy_divergence/{divergence.__name__}": mean}

    label = describe("off_policy_divergence", coefficient=float(coefficient), divergence=divergence)
    return stateless(apply, needs={"logp", "reference_logp", "off_policy"}, label=label)
