"""Groups of train prompts (`Visit`), and their history (`History`), which curricula store."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.requests import SampleRequest


class History(NamedTuple):
    """The history of P prompts.

    Fields:
      times_sampled: int32 [P], number of counted groups.
      last: int32 [P], step of the last group; -1 before the first.
      mean: float [P], exponential average of the pass rates.
      rates: float [P, 1], pass rate of the last graded group; NaN before the first.
    """

    times_sampled: np.ndarray
    last: np.ndarray
    mean: np.ndarray
    rates: np.ndarray

    @property
    def latest(self) -> np.ndarray:
        """Pass rate of the last graded group, [P]; NaN before the first."""
        return self.rates[:, 0]


class Visit(NamedTuple):
    """A group of responses to a train prompt.

    Fields:
      number: of the prompt.
      outcomes: of the graded responses.
      rows: of the group, in `batch`.
      batch: the graded batch.
    """

    number: int
    outcomes: np.ndarray
    rows: np.ndarray
    batch: Batch

    @property
    def rate(self) -> float:
        """The pass rate: mean outcome; NaN without a graded response."""
        return float(np.mean(self.outcomes)) if len(self.outcomes) else float("nan")


def no_history(prompts: int, prior: float = 0.5, dtype: DTypeLike = np.float32) -> History:
    """The history before the first group, with the value `prior` of `mean`."""
    return History(
        np.zeros(prompts, np.int32),
        np.full(prompts, -1, np.int32),
        np.full(prompts, prior, dtype),
        np.full((prompts, 1), np.nan, dtype),
    )


def visited(
    history: History, step: int, rates: Iterable[tuple[int, float]], decay: float = 0.0
) -> History:
    """The history after further groups, in order: mean' = decay · mean + (1 - decay) · rate.

    An ungraded group (NaN) is counted, but the pass rates do not change.

    Args:
      history: of the prompts, before these groups.
      step: number of the step, stored for each prompt.
      rates: number of the prompt and pass rate, for each group.
      decay: weight of the previous mean.
    """
    num_groups, last, mean, latest = (array.copy() for array in history)
    for number, rate in rates:
        if not math.isnan(rate):
            latest[number] = rate
            mean[number] = decay * mean[number] + (1 - decay) * rate
        num_groups[number] += 1
        last[number] = step
    return History(num_groups, last, mean, latest)


def visits_of(seen: Sequence[Batch], prompts: int, undecided: bool = False) -> list[Visit]:
    """The groups of a step for the first `prompts` prompts.

    Of the requests for a prompt in a round, only those in the first batch count. Groups that a
    stage samples again under another view do not count.

    Args:
      undecided: also count groups without a graded response. Otherwise a curriculum that
        requests the least sampled prompts would request ungraded ones in every step.
    """
    found, known = [], set()
    for batch in seen:
        requests = [batch.requests[rows[0]] for rows in batch.groups]
        for request, rows, graded in zip(requests, batch.groups, batch.outcomes(), strict=True):
            outcomes = graded[~np.isnan(graded)]
            if (
                request.number < prompts
                and _asked(request) not in known
                and (undecided or len(outcomes))
            ):
                found.append(Visit(request.number, outcomes, rows, batch))
        known.update(map(_asked, requests))
    return found


def rated_rates(seen: Sequence[Batch], prompts: int) -> dict[int, float]:
    """Pass rates of the prompts that a step rated and graded, by number (below `prompts`)."""
    found = {}
    for batch in seen:
        for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
            request = batch.requests[rows[0]]
            if request.rating and request.number < prompts and not np.isnan(outcomes).all():
                found[request.number] = float(np.nanmean(outcomes))
    return found


def outcomes_by(
    seen: Sequence[Batch], label: Callable[[SampleRequest], str]
) -> dict[str, list[float]]:
    """Mean outcomes of graded groups by a label of their requests, except those that only rate."""
    found: dict[str, list[float]] = {}
    for batch in seen:
        for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
            request = batch.requests[rows[0]]
            if not request.rating and not np.isnan(outcomes).all():
                found.setdefault(label(request), []).append(float(np.nanmean(outcomes)))
    return found


def _asked(request: SampleRequest) -> tuple[int, int, bool]:
    """A key that is equal for the requests which a curriculum proposes together for one prompt."""
    return request.number, request.round, request.rating
