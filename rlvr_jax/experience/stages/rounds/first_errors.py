"""The first incorrect step of incorrect responses, and continuations after the steps before it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.requests import SampleRequest, View
from rlvr_jax.types import is_correct


def first_incorrect_step(
    step: np.ndarray, score: np.ndarray, mask: np.ndarray, below: float
) -> np.ndarray:
    """The id of the first step whose score is below a bound, int [B]; -1 without one.

    Args:
      step: int [B, T], ids of steps, -1 for tokens in none.
      score: [B, T]; the score of a step is the sum over its tokens.
      mask: bool [B, T], tokens that count.
      below: bound of the score.
    """
    found = np.full(len(step), -1)
    for row, (ids, values, there) in enumerate(zip(step, score, mask, strict=True)):
        for number in np.unique(ids[there & (ids >= 0)]):
            if values[there & (ids == number)].sum() < below:
                found[row] = number
                break
    return found


def tokens_before(step: np.ndarray, mask: np.ndarray, incorrect: np.ndarray) -> np.ndarray:
    """Number of tokens before the first incorrect step of each row, int [B]; 0 without one."""
    there = mask & (step == incorrect[:, None])
    return np.where(incorrect >= 0, there.argmax(axis=1), 0)


def requests_after(
    batch: Batch, rows: Sequence[int], given: Sequence[list[int]], view: View, **fields: Any
) -> list[SampleRequest]:
    """Requests for continuations of some rows.

    Args:
      batch: has the rows.
      rows: numbers of rows.
      given: tokens of each row's beginning.
      view: form in which the prompts are shown.
      fields: others of the requests; `samples`, continuations of each row, is 1 without them.
    """
    place = np.concatenate([np.arange(len(group)) for group in batch.groups])
    samples = fields.pop("samples", 1)
    return [
        replace(
            batch.requests[row],
            view=view,
            samples=samples,
            given=ids,
            first_sample=int(place[row]) * samples,
            **fields,
        )
        for row, ids in zip(rows, given, strict=True)
    ]


def repairable(batch: Batch, below: float) -> tuple[np.ndarray, np.ndarray]:
    """Incorrect rows with an incorrect step, bool [B], and the tokens before it, int [B].

    Args:
      batch: after `score_steps`.
      below: score below which a step is incorrect.
    """
    rollouts = batch.rollouts
    if "step" not in rollouts.records or "process_reward" not in rollouts.records:
        raise ValueError("step scores: steps must be scored, put score_steps() first")
    first = first_incorrect_step(
        rollouts.records["step"], rollouts.records["process_reward"], rollouts.mask, below
    )
    failed = batch.decided & ~is_correct(rollouts.outcome)
    return failed & (first >= 0), tokens_before(rollouts.records["step"], rollouts.mask, first)
