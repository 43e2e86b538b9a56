"""Rewards of steps that are refined before they are paid, so that they cannot be farmed."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.arguments import check_finite
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.process import (
    ProcessReward,
    clipped_scores,
    merged_steps,
    of_steps,
    score_differences,
    spread,
    summed_scores,
)
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.objectives.statistics.steps import Steps, at_tokens, step_sum
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = ["clip_and_delta", "step_labels", "thought_rewards", "thoughts"]


@part
def clip_and_delta(threshold: float = 0.0, clip: bool = True, delta: bool = True) -> ProcessReward:
    """`score_differences` of `clipped_scores`: the way earns min(r_1 - η, 0).

    Args:
      threshold: η.
      clip, delta: with either alone, or neither, to compare.
    Reads: step, process_reward at the last tokens of the steps.
    Raises:
      ValueError: threshold not finite.
    Source: "On Designing Effective RL Reward at Training Time for LLM Reasoning",
      https://arxiv.org/abs/2410.15115.
    """
    check_finite("clip_and_delta", threshold=threshold)

    def refine(scores, steps):
        if clip:
            scores = clipped_scores(scores, steps, threshold)
        return score_differences(scores, steps) if delta else scores

    return of_steps(refine)


def step_labels(scores: Float[Array, "B T"], steps: Steps) -> Float[Array, "B T"]:
    """+1 for steps of a score above 0, -1 for the others; a table, 0 where there is none."""
    return jnp.where(steps.exists, jnp.where(scores > 0, 1.0, -1.0), 0).astype(scores.dtype)


def thoughts(rollouts: Rollouts, mask: Bool[Array, "B T"]) -> tuple[Float[Array, "B T"], Steps]:
    """Steps with equal labels that follow one another, and their labels as a table."""
    scores, steps = summed_scores(rollouts, mask)
    labels = step_labels(scores, steps)
    merged = merged_steps(labels, steps)
    # The label of a thought is that of any of its tokens.
    total = step_sum(at_tokens(labels, steps), merged)
    return jnp.sign(total), merged


@part(reads={"step", "process_reward"})
def thought_rewards(penalty: NonNegative = 1.0) -> ProcessReward:
    """Right thoughts earn the accuracy of their group, wrong ones cost p in a wrong response.

    Where nobody is right partial correctness earns nothing; an attempt that was given up within a
    right response costs nothing. Splitting a thought into more steps changes nothing.

    Args:
      penalty: p, at least 0.
    Reads: step, process_reward (the sum over a step is above 0 if it is right), outcome, group.
    Raises:
      ValueError: a negative penalty.
    Source: "Good Learners Think Their Thinking"; the scales are ours.
    """

    def of(rollouts, mask):
        label, steps = thoughts(rollouts, mask)
        accuracy = group_mean(rollouts.outcome, rollouts.group)[:, None]
        cost = jnp.where(outcome_is_right(rollouts.outcome)[:, None], 0.0, -penalty)
        return spread(jnp.where(label > 0, accuracy, cost.astype(accuracy.dtype)), steps)

    return of
