"""Tokens that leave the way of good trajectories: the velocity of a flow as a process reward."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.rewards.process import ProcessReward, largest_in_response, per_response
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part

__all__ = ["deviation_penalty", "flow_score", "velocity_deviation"]


def velocity_deviation(
    predicted: Float[Array, "B T D"], velocity: Float[Array, "B T D"]
) -> Float[Array, "B T"]:
    """Mean over channels of (v - u)²: how far a token's velocity is from the field's.

    Args:
      predicted: v, of the flow network at a noisy hidden state.
      velocity: u, the hidden state less the noise.
    """
    return jnp.mean((predicted - velocity) ** 2, axis=-1)


def flow_score(deviation: Float[Array, "B T"], time: float) -> Float[Array, "B T"]:
    """s / (1 - s) times the deviation at time s of the flow.

    Args:
      time: s, in (0, 1).
    """
    return time / (1 - time) * deviation


@part(reads={"process_reward"})
def deviation_penalty(threshold: Unit = 0.6, most: Count = 15) -> ProcessReward:
    """-q on the largest scores of a response, q the scores min-max within it; 0 elsewhere.

    Only scores above the threshold count, and of these the `most` largest. A response of one token,
    or of equal scores, is not charged.

    Args:
      threshold: of q, in [0, 1].
      most: tokens of a response.
    Reads: process_reward (the scores), mask.
    Raises:
      ValueError: a threshold outside [0, 1], or no tokens.
    Source: RLFR, https://github.com/Jinghaoleven/RLFR.
    """

    def of(rollouts, mask):
        scaled = per_response(rollouts.process_reward, mask)
        kept = largest_in_response(scaled, mask, threshold, most, rollouts.rollout_id)
        return -jnp.where(kept, scaled, 0)

    return of
