"""Groups that carry no signal: their share of the batch, and what is done about it."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_all_equal, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = [
    "amplify_informative",
    "drop_neutral_rollouts",
    "drop_perfect_groups",
    "informative_share",
    "is_perfect_group",
    "nonzero_scale",
]


def informative_share(
    reward: Float[Array, "B"], group: Int[Array, "B"], where: Bool[Array, "B"]
) -> Float[Array, ""]:
    """Share of the rollouts that count whose group has rewards that differ."""
    return masked_mean(~group_all_equal(reward, group), where).astype(reward.dtype)


def is_perfect_group(
    reward: Float[Array, "B"], group: Int[Array, "B"], max_reward: float
) -> Bool[Array, "B"]:
    """Whether all rewards of the group equal the highest one of the task."""
    return group_all_equal(reward, group) & (reward == max_reward)


def nonzero_scale(reward: Float[Array, "B"]) -> Float[Array, ""]:
    """B / max(m, 1) with m the rollouts of non-zero reward: verl's reading of GPG's factor.

    An all-correct group counts as informative then, a wrong rollout of a mixed group does not.
    """
    nonzero = jnp.sum((reward != 0).astype(reward.dtype))
    return reward.shape[0] / jnp.maximum(nonzero, 1)


@part(writes={"advantage"}, once=True)
def amplify_informative(epsilon: Positive = 1e-5) -> Transform:
    """A' = A / (v + ε), v the share of the rollouts in groups with rewards that differ.

    v is the share among the rollouts with tokens: a mean over these becomes one over those that
    carry a gradient.

    Args:
      epsilon: ε, positive; a batch of equal rewards keeps its advantages of 0.
    Reads: advantage, reward, group. Writes: advantage. Metrics: informative_share.
    Raises:
      ValueError: epsilon not positive.
    Source: GPG, https://github.com/AMAP-ML/GPG.
    """

    def apply(signals, context, state):
        rollouts = context.rollouts
        share = informative_share(rollouts.reward, rollouts.group, has_tokens(signals.mask))
        signals = replace(signals, advantage=signals.advantage / (share + epsilon))
        return signals, state, {"informative_share": share}

    return apply


@part(writes={"mask"})
def drop_neutral_rollouts() -> Transform:
    """Takes rollouts whose advantage is 0 at every token out of the loss and its denominators.

    Each update drops its own; a batch is split into as many updates as before.
    Reads: advantage. Writes: mask. Metrics: neutral_share (of the rollouts with tokens).
    """

    def apply(signals, context, state):
        del context
        kept = jnp.any(signals.mask & (signals.advantage != 0), axis=1)
        share = masked_mean(~kept, has_tokens(signals.mask)).astype(signals.weight.dtype)
        signals = replace(signals, mask=signals.mask & kept[:, None])
        return signals, state, {"neutral_share": share}

    return apply


@part(writes={"mask"})
def drop_perfect_groups(max_reward: float) -> Transform:
    """Takes groups whose rewards all equal the highest one out of the loss and its denominators.

    Args:
      max_reward: the highest reward of the task.
    Reads: reward, group. Writes: mask. Metrics: perfect_share (of the rollouts with tokens).
    Source: NGRPO, https://github.com/nangongrui-ngr/NGRPO.
    """

    def apply(signals, context, state):
        reward, group = context.rollouts.reward, context.rollouts.group
        perfect = is_perfect_group(reward, group, max_reward)
        share = masked_mean(perfect, has_tokens(signals.mask)).astype(reward.dtype)
        signals = replace(signals, mask=signals.mask & ~perfect[:, None])
        return signals, state, {"perfect_share": share}

    return apply
