"""What depends on how many rollouts of a prompt are right: KL weights, and lengths of wrong ones.

A rollout is right if the integer part of its reward is at least 1: a bonus for form does not count.
"""

import math
from typing import Annotated

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Context, Transform
from rlvr_jax.objectives.statistics.groups import group_count, group_mean, group_sum
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.types import Signals, replace
from rlvr_jax.types.hyperparameters import Range
from rlvr_jax.types.parts import part

__all__ = [
    "amplify_long_errors",
    "group_difficulty",
    "kl_weight_by_difficulty",
    "long_error_factor",
    "reward_is_right",
]


def reward_is_right(reward: Float[Array, "B"]) -> Bool[Array, "B"]:
    """Whether the integer part of the reward is at least 1."""
    return jnp.trunc(reward) >= 1


def group_difficulty(reward: Float[Array, "B"], group: Int[Array, "B"]) -> Float[Array, "B"]:
    """d = 1 - the share of right rollouts in the group."""
    return 1 - group_mean(reward_is_right(reward).astype(reward.dtype), group)


def kl_weight_by_difficulty(signals: Signals, context: Context) -> Float[Array, "B T"]:
    """1 - exp(-e (1 - d)) for tokens of positive advantage in mixed groups, else 1.

    Rare successes on hard prompts are freed from the reference (0 as d goes to 1), easy ones keep
    nearly the full price. For the argument `weight` of `kl_penalty`.
    Source: APO, https://github.com/Indolent-Kawhi/View-R1.
    """
    difficulty = group_difficulty(context.rollouts.reward, context.rollouts.group)
    eased = -jnp.expm1(-math.e * (1 - difficulty))
    mixed = (difficulty > 0) & (difficulty < 1)
    return jnp.where((signals.advantage > 0) & mixed[:, None], eased[:, None], 1)


def long_error_factor(
    reward: Float[Array, "B"],
    group: Int[Array, "B"],
    length: Int[Array, "B"],
    base: float,
    epsilon: float = 1e-9,
) -> Float[Array, "B"]:
    """2 - b^-Δ for wrong rollouts Δ > 0 tokens above the mean length of the right ones, else 1.

    Groups without a right rollout have 1 everywhere. The factor is bounded by 2. As in the authors'
    code the mean divides by the number of right rollouts plus ε.

    Args:
      reward, group: of the rollouts.
      length: response tokens; a right rollout without any is in no mean.
      base: b, above 1.
      epsilon: ε.
    """
    right, tokens = reward_is_right(reward) & (length > 0), length.astype(reward.dtype)
    count = group_count(group, right)
    excess = tokens - group_sum(tokens, group, right) / (count.astype(tokens.dtype) + epsilon)
    compared = ~right & (count > 0) & (excess > 0)
    return jnp.where(compared, 2 - jnp.exp(-jnp.maximum(excess, 0) * math.log(base)), 1)


@part(writes={"advantage"})
def amplify_long_errors(
    base: Annotated[float, Range(1, open_low=True, finite=False)] = 1.00001, epsilon: float = 1e-9
) -> Transform:
    """A' = A · `long_error_factor`: wrong answers longer than the right ones are pushed harder.

    A wrong rollout of positive advantage (graded rewards) is paid for length.

    Args:
      base: b, above 1; with 1.00001 an excess of 1000 tokens adds 1 %.
      epsilon: added to the number of right rollouts.
    Reads: advantage, reward, group, mask. Writes: advantage. Metrics: none.
    Raises:
      ValueError: base not above 1.
    Source: APO, https://github.com/Indolent-Kawhi/View-R1.
    """

    def apply(signals, context, state):
        reward, group = context.rollouts.reward, context.rollouts.group
        length = masked_count(context.rollouts.mask, axis=1)
        factor = long_error_factor(reward, group, length, base, epsilon)
        return replace(signals, advantage=signals.advantage * factor[:, None]), state, {}

    return apply
