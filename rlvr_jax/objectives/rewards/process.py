"""Process rewards: what steps or tokens are worth, as rewards of tokens.

Scores of steps are tables (see `statistics.steps`): `steps_of` reads them from `process_reward`,
`spread` puts them on the last tokens of their steps, and between the two they are refined. What a
score does to the tokens before it is the matter of an advantage (`process_to_go`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.implicit_rewards import step_ends
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.objectives.statistics.scopes import scoped_max, scoped_min, within_response
from rlvr_jax.objectives.statistics.steps import (
    Steps,
    at_tokens,
    find_steps,
    next_step,
    previous_step,
    step_sum,
)
from rlvr_jax.types import Rollouts
from rlvr_jax.types.parts import Part

__all__ = [
    "ProcessReward",
    "clipped_scores",
    "final_scores",
    "largest_in_response",
    "merged_steps",
    "of_steps",
    "per_response",
    "score_differences",
    "spread",
    "summed_scores",
]

Table = Float[Array, "B T"]


@dataclass(frozen=True, eq=False, repr=False)
class ProcessReward(Part):
    """What each token is paid on its way.

    Fields:
      of: (rollouts, mask) -> [B, T], read on the mask only.
      reads: records of the rollouts that it reads.
    """

    of: Callable[[Rollouts, Bool[Array, "B T"]], Float[Array, "B T"]]
    reads: frozenset[str] = frozenset()


def summed_scores(rollouts: Rollouts, mask: Bool[Array, "B T"]) -> tuple[Table, Steps]:
    """The scores of the steps, sums of `process_reward` over their tokens; and the steps."""
    steps = find_steps(rollouts.step, mask)
    return step_sum(rollouts.process_reward, steps), steps


def final_scores(rollouts: Rollouts, mask: Bool[Array, "B T"]) -> tuple[Table, Steps]:
    """The scores of the steps, `process_reward` at their last tokens; and the steps."""
    steps = find_steps(rollouts.step, mask)
    return step_sum(jnp.where(step_ends(steps), rollouts.process_reward, 0), steps), steps


def spread(scores: Table, steps: Steps) -> Float[Array, "B T"]:
    """The score of each step on its last token, 0 elsewhere."""
    return jnp.where(step_ends(steps), at_tokens(scores, steps), 0)


def clipped_scores(scores: Table, steps: Steps, threshold: float) -> Table:
    """min(r - η, 0): good steps earn nothing, so that more of them earn no more.

    Args:
      threshold: η, from which on a step is good.
    """
    return jnp.where(steps.exists, jnp.minimum(scores - threshold, 0), 0)


def score_differences(scores: Table, steps: Steps) -> Table:
    """r_k - r_{k+1}, r_{K-1} for the last but one and 0 for the last: the sum from k on is r_k.

    Whatever follows, a step earns its own score, and a response r_1; that needs γ = 1. The last
    step, the answer, is the outcome's.
    """
    last = _number(steps) - 1
    column = jnp.arange(scores.shape[1], dtype=last.dtype)[None]
    following = jnp.where(column + 1 < last, next_step(scores, steps), 0)
    return jnp.where(steps.exists & (column < last), scores - following, 0)


def merged_steps(labels: Table, steps: Steps) -> Steps:
    """Steps of which those that follow one another with equal labels are one.

    Args:
      labels: of the steps, as a table.
    """
    changes = steps.exists & (labels != previous_step(labels, steps))
    first = jnp.arange(labels.shape[1])[None] == 0
    begins = jnp.where(first, steps.exists, changes)
    place = jnp.cumsum(begins, axis=1, dtype=jnp.int32) - 1
    index = jnp.take_along_axis(jnp.maximum(place, 0), steps.index, axis=1, mode="clip")
    number = jnp.sum(begins, axis=1, keepdims=True, dtype=jnp.int32)
    column = jnp.arange(labels.shape[1], dtype=jnp.int32)[None]
    return Steps(jnp.where(steps.member, index, 0), steps.member, column < number)


def per_response(scores: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B T"]:
    """Scores of tokens, min-max within their response, in [0, 1]; 0 where all are equal."""
    sets = within_response(None)
    low = scoped_min(scores, mask, sets)
    size = scoped_max(scores, mask, sets) - low
    return jnp.where(mask & (size > 0), (scores - low) / jnp.where(size > 0, size, 1), 0)


def largest_in_response(
    scores: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    threshold: float,
    most: int,
    rollout_id: Int[Array, "B"],
) -> Bool[Array, "B T"]:
    """Tokens above the threshold, and of these the `most` largest of their response.

    Args:
      scores: of tokens.
      threshold: exclusive.
      most: of a response; ties go to the earlier token.
      rollout_id: distinct.
    """

    def count(chosen):
        return masked_count(chosen, axis=1)[:, None]

    return masked_top_k(scores, mask & (scores > threshold), most, rollout_id, count)


def of_steps(
    refine: Callable[[Table, Steps], Table],
    read: Callable[[Rollouts, Array], tuple[Table, Steps]] = final_scores,
    reads: Iterable[str] = (),
) -> ProcessReward:
    """The process reward of refined scores of steps, on their last tokens.

    Args:
      refine: (scores, steps) -> scores, as tables.
      read: how the scores are read.
      reads: records beside `step` and `process_reward`.
    """

    def of(rollouts, mask):
        scores, steps = read(rollouts, mask)
        return spread(refine(scores, steps), steps)

    return ProcessReward(of, frozenset({"step", "process_reward", *reads}))


def _number(steps):
    return jnp.sum(steps.exists, axis=1, keepdims=True, dtype=jnp.int32)
