"""Batches with rows that another policy wrote: who is compared, trained on, and held on to."""

import jax
import jax.numpy as jnp

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.divergences import Divergence
from rlvr_jax.objectives.statistics.groups import (
    group_count,
    group_deviation,
    group_mean,
    group_std,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.objectives.surrogates.by_origin import foreign_tokens
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import NonNegative, Positive
from rlvr_jax.types.parts import part

__all__ = [
    "average_by_origin",
    "centered_on_own_rows",
    "drop_off_policy",
    "off_policy_divergence",
    "on_policy_normalized",
    "relative_to_own_rows",
    "weigh_unlikely",
]


@part
def on_policy_normalized(epsilon: Positive = 1e-6) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the group's own rollouts; 0 on rows of another policy.

    Args:
      epsilon: ε, added to the standard deviation (n - 1), outside its root.
    Reads: reward, group, off_policy. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    """

    def advantage(rollouts):
        reward, group, own = rollouts.reward, rollouts.group, ~rollouts.off_policy
        centered = group_deviation(reward, group, where=own)
        scaled = centered / (group_std(reward, group, where=own) + epsilon)
        return jnp.where(own, scaled, 0)

    return rollout_advantage(advantage, reads={"off_policy"})


@part
def relative_to_own_rows(epsilon: Positive = 1e-6) -> Transform:
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

    def advantage(rollouts):
        reward, group, own = rollouts.reward, rollouts.group, ~rollouts.off_policy
        alone = group_count(group, own) <= 1
        spread = group_std(reward, group, where=own)
        scale = jnp.where(alone | (spread == 0), 1, spread) + epsilon
        return (reward - jnp.where(alone, 0, group_mean(reward, group, where=own))) / scale

    return rollout_advantage(advantage, reads={"off_policy"})


@part
def centered_on_own_rows() -> Transform:
    """A_i = R_i - mean over the policy's own rows of the group, for all its rows.

    An own row that is alone in its group has the mean 0.

    Reads: reward, group, off_policy. Writes: advantage. Metrics: none.
    Source: CalibRL, https://github.com/zhh6425/CalibRL.
    """

    def advantage(rollouts):
        own = ~rollouts.off_policy
        alone = group_count(rollouts.group, own) <= 1
        mean = group_mean(rollouts.reward, rollouts.group, where=own)
        return rollouts.reward - jnp.where(alone, 0, mean)

    return rollout_advantage(advantage, reads={"off_policy"})


@part(reads={"logp", "off_policy"}, writes={"weight"})
def weigh_unlikely(power: NonNegative) -> Transform:
    """Weighs tokens that somebody else wrote by (1 - π)^γ: what the policy would say anyway, less.

    Args:
      power: γ, at least 0.
    Reads: logp, off_policy, origin. Writes: weight, of foreign tokens. Metrics: unlikely_weight
      (its mean over them).
    Raises:
      ValueError: a negative power.
    Source: RL-PLUS, https://github.com/YihongDong/RL-PLUS.
    """

    def apply(signals, context, state):
        foreign = signals.mask & foreign_tokens(context.rollouts)
        # 1 - π rounds below 0 where the policy is sure.
        rest = jnp.maximum(-jnp.expm1(context.stats.logp), 0)
        factor = jax.lax.stop_gradient(jnp.where(foreign, rest, 1)) ** power
        signals = replace(signals, weight=signals.weight * jnp.where(foreign, factor, 1))
        return signals, state, {"unlikely_weight": masked_mean(factor, foreign)}

    return apply


@part(reads={"off_policy", "batch_statistics"}, writes={"weight"})
def average_by_origin() -> Transform:
    """Makes a token mean the sum of two: over own tokens, and over foreign rows of their token
    means. A long worked solution then counts as a short one.

    weight' = weight · N / n for the n own tokens of N, and weight · N / (S n_i) for those of the S
    rows that hold foreign tokens, n_i of them in row i.

    Reads: off_policy, origin, mask. Writes: weight. Metrics: none.
    Source: AMPO, https://github.com/SII-Enigma/AMPO (its equation 7; the code has one sum).
    """

    def apply(signals, context, state):
        mask, dtype = signals.mask, signals.weight.dtype
        foreign = mask & foreign_tokens(context.rollouts)

        def count(tokens, axis=None):
            return jnp.maximum(masked_count(tokens, axis), 1).astype(dtype)

        rows = jnp.maximum(jnp.sum(has_tokens(foreign)), 1).astype(dtype)
        share = jnp.where(foreign, rows * count(foreign, 1)[:, None], count(mask & ~foreign))
        signals = replace(signals, weight=signals.weight * count(mask) / share)
        return signals, state, {}

    return apply


@part(reads={"off_policy"}, writes={"mask"})
def drop_off_policy() -> Transform:
    """Takes the rows of another policy out of the loss and out of its denominators.

    Reads: off_policy. Writes: mask. Metrics: none.
    """

    def apply(signals, context, state):
        mask = signals.mask & ~context.rollouts.off_policy[:, None]
        return replace(signals, mask=mask), state, {}

    return apply


@part(reads={"logp", "reference_logp", "off_policy"}, writes={"term"})
def off_policy_divergence(coefficient: NonNegative, divergence: Divergence) -> Transform:
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

    def apply(signals, context, state):
        rollouts = context.rollouts
        written = rollouts.mask & rollouts.off_policy[:, None]
        values = divergence(context.stats.logp, rollouts.reference_logp, context.old_logp)
        mean = masked_mean(values, written)
        signals = replace(signals, term=signals.term + coefficient * mean)
        return signals, state, {f"off_policy_divergence/{divergence.__name__}": mean}

    return apply
