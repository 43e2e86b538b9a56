"""Rewards for coming further than before on a task, and lessons that were worth remembering."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean, judged_rows
from rlvr_jax.objectives.statistics.groups import group_mean
from rlvr_jax.types.hyperparameters import NonNegative
from rlvr_jax.types.parts import part

__all__ = ["beyond_best", "lesson_scores", "potential", "progress", "updated_utility"]

Rows = Float[Array, "B"]


def potential(outcome: Rows, progress: Rows) -> Rows:
    """φ: 1 for a right response, else the share of its steps that it says it has done.

    Args:
      outcome: above ½ is right.
      progress: the share, in [0, 1]; 0 where nothing can be read.
    """
    return jnp.where(outcome_is_right(outcome), 1, progress)


def progress(phi: Rows, best: Rows) -> Rows:
    """I = max(0, φ - Φ): how much further than the task has been solved."""
    return jnp.maximum(phi - best, 0)


@part
def beyond_best(column: int, coefficient: NonNegative = 1.0) -> Shaping:
    """R = outcome + c max(0, φ - Φ), Φ the largest share of right responses the prompt ever had.

    The state is Φ of every prompt of the task, 0 at first. What a response says of its own progress
    is not checked: on prompts that are never solved Φ stays and self-praise keeps paying.

    Args:
      column: of the task's rewards, what a response says it has done.
      coefficient: c, at least 0.
    Reads: outcome, group, component_rewards. Metrics: reward/outcome, reward/progress, best_share
      (mean Φ of the batch's rows, before it).
    Raises:
      ValueError: a negative coefficient.
    Source: RetroAgent, https://github.com/zhangxy-2019/RetroAgent.
    """

    def init(prompts):
        return np.zeros(prompts, np.float32)

    def apply(rollouts, state, moment):
        kind, number = rollouts.outcome.dtype, np.asarray(moment.prompt)
        known = number < len(state)
        place = np.where(known, number, 0)
        best = jnp.asarray(np.where(known, state[place], 0), kind)
        told = rollouts.component_rewards[:, column]
        phi = potential(rollouts.outcome, jnp.where(jnp.isnan(told), 0, told))
        gain = progress(phi, best)
        share = np.asarray(group_mean(rollouts.outcome, rollouts.group))
        counted = np.asarray(judged_rows(rollouts)) & known
        state = state.copy()
        np.maximum.at(state, place[counted], share[counted].astype(state.dtype))
        metrics = {
            "reward/outcome": judged_mean(rollouts.outcome, rollouts),
            "reward/progress": judged_mean(gain, rollouts),
            "best_share": judged_mean(best, rollouts),
        }
        return rollouts.outcome + coefficient * gain, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, init, reads, column + 1)


def updated_utility(utility: Rows, outcome: Rows, rate: float) -> Rows:
    """(1 - β) u + β outcome: what a lesson is worth after it was shown.

    Args:
      rate: β, in [0, 1].
    """
    return (1 - rate) * utility + rate * outcome


def lesson_scores(
    query: Float[Array, "B D"],
    lessons: Float[Array, "B D"],
    utility: Rows,
    uses: Int[Array, "B"],
    similarity: float,
    exploration: float,
    least: float,
) -> tuple[Rows, Bool[Array, "B"], Rows]:
    """Cosine, whether a lesson may be shown, and α cos + (1 - α)(u + κ √(ln Σn / n)).

    Args:
      query: what a lesson is wanted for, one for each lesson.
      lessons: embeddings of the lessons.
      utility: u, of each.
      uses: n, at least 1 each; Σn is that of all.
      similarity: α.
      exploration: κ.
      least: cosine from which on a lesson may be shown.
    """
    dot = jnp.sum(query * lessons, axis=1)
    size = jnp.sqrt(jnp.sum(query**2, axis=1) * jnp.sum(lessons**2, axis=1))
    cosine = dot / jnp.where(size > 0, size, 1)
    number = uses.astype(utility.dtype)
    bonus = jnp.sqrt(jnp.log(jnp.sum(number)) / number)
    score = similarity * cosine + (1 - similarity) * (utility + exploration * bonus)
    return jax.lax.stop_gradient(cosine), cosine >= least, score
