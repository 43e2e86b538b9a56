"""Rewards for answers that are at least readable, or ended, and for what was done on the way."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.parts import Shaping, shaping
from rlvr_jax.types.hyperparameters import Finite, Unit
from rlvr_jax.types.parts import part

__all__ = ["ended_bonus", "outcome_and_turns", "partial_credit", "right_or_readable"]


@part
def ended_bonus(bonus: Finite) -> Shaping:
    """The outcome, and a bonus for responses that the budget did not cut off.

    Args:
      bonus: small beside 1.
    Reads: outcome, truncated.
    Raises:
      ValueError: a bonus that is not finite.
    """

    def reward(rollouts):
        ended = jnp.where(rollouts.truncated, 0, bonus)
        return rollouts.outcome + ended.astype(rollouts.outcome.dtype)

    return shaping(reward)


@part
def outcome_and_turns() -> Shaping:
    """The outcome, and the sum of what the turns earned.

    Reads: outcome, process_reward.
    """

    def reward(rollouts):
        return rollouts.outcome + jnp.sum(rollouts.process_reward, axis=1)

    return shaping(reward, reads=("process_reward",))


def partial_credit(
    right: Bool[Array, "B"], readable: Bool[Array, "B"], partial: float
) -> Float[Array, "B"]:
    """1 for right answers, `partial` for wrong ones that can be read, 0 for the others."""
    return jnp.where(right, 1.0, jnp.where(readable, partial, 0.0))


@part
def right_or_readable(partial: Unit) -> Shaping:
    """`partial_credit` where readable is a row that gives an answer (`Rollouts.answer`).

    Args:
      partial: what a wrong answer earns, in [0, 1].
    Reads: outcome, answer.
    Raises:
      ValueError: partial outside [0, 1].
    Source: R³, https://github.com/WooooDyy/LLM-Reverse-Curriculum-RL.
    """

    def reward(rollouts):
        right = outcome_is_right(rollouts.outcome)
        earned = partial_credit(right, rollouts.answer >= 0, partial)
        return earned.astype(rollouts.outcome.dtype)

    return shaping(reward, reads={"answer"})
