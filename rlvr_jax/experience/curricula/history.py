"""What is known of each train prompt from its visits: the state that several curricula share."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch


class History(NamedTuple):
    """Of each of P prompts, as arrays of fixed shape.

    Fields:
      visits: int32 [P], groups that were graded.
      last: int32 [P], step of the last one; -1 before the first.
      mean: float [P], exponential average of the pass rates.
      rates: float [P, E], pass rates of the last E visits, that of visit v (from 0) at v mod E; NaN
        where there was none.
    """

    visits: np.ndarray
    last: np.ndarray
    mean: np.ndarray
    rates: np.ndarray

    @property
    def latest(self) -> np.ndarray:
        """Pass rate of the last visit, [P]; NaN before the first."""
        place = (self.visits - 1) % self.rates.shape[1]
        return np.take_along_axis(self.rates, place[:, None], axis=1)[:, 0]


class Visit(NamedTuple):
    """A group of answers to a train prompt.

    Fields:
      number: of the prompt.
      outcomes: of the answers that have a verdict.
      rows: of the group, in `batch`.
      batch: that it was graded in.
    """

    number: int
    outcomes: np.ndarray
    rows: np.ndarray
    batch: Batch

    @property
    def rate(self) -> float:
        """The pass rate: mean outcome; NaN without a verdict."""
        return float(np.mean(self.outcomes)) if len(self.outcomes) else float("nan")


def no_history(
    prompts: int, kept: int = 1, prior: float = 0.5, dtype: DTypeLike = np.float32
) -> History:
    """The history before the first visit.

    Args:
      kept: visits whose rates are remembered one by one (E).
      prior: of `mean`.
      dtype: of rates.
    """
    return History(
        np.zeros(prompts, np.int32),
        np.full(prompts, -1, np.int32),
        np.full(prompts, prior, dtype),
        np.full((prompts, kept), np.nan, dtype),
    )


def visited(
    history: History, step: int, numbers: Sequence[int], rates: Sequence[float], decay: float = 0.0
) -> History:
    """The history after visits, in order: mean' = decay · mean + (1 - decay) · rate.

    A visit without a verdict (NaN) counts; its rate is taken to be that of the one before it.
    """
    visits, last, mean, kept = (array.copy() for array in history)
    for number, rate in zip(numbers, rates, strict=True):
        known = not math.isnan(rate)
        before = kept[number, (visits[number] - 1) % kept.shape[1]]
        kept[number, visits[number] % kept.shape[1]] = rate if known else before
        mean[number] = decay * mean[number] + (1 - decay) * rate if known else mean[number]
        visits[number] += 1
        last[number] = step
    return History(visits, last, mean, kept)


def visits_of(seen: Sequence[Batch], prompts: int, undecided: bool = False) -> list[Visit]:
    """The visits of a step, of the first `prompts` prompts.

    A prompt counts as it was answered first in a round, with all copies that were asked at once:
    what a stage draws again, under another view, says nothing about the prompt as it was asked.
    Groups without any verdict are none.

    Args:
      undecided: groups without any verdict are visits, too: what asks the least visited prompts
        would else ask them again in every step.
    """
    found, known = [], set()
    for batch in seen:
        asks = [batch.asks[rows[0]] for rows in batch.groups]
        for ask, rows, told in zip(asks, batch.groups, batch.outcomes(), strict=True):
            outcomes = told[~np.isnan(told)]
            if ask.number < prompts and _asked(ask) not in known and (undecided or len(outcomes)):
                found.append(Visit(ask.number, outcomes, rows, batch))
        known.update(map(_asked, asks))
    return found


def rated_rates(seen: Sequence[Batch], prompts: int) -> dict[int, float]:
    """Pass rates of the prompts that were rated in a step, by number; without those of which no
    answer has a verdict, and of the first `prompts` prompts alone."""
    found = {}
    for batch in seen:
        for rows, told in zip(batch.groups, batch.outcomes(), strict=True):
            ask = batch.asks[rows[0]]
            if ask.rating and ask.number < prompts and not np.isnan(told).all():
                found[ask.number] = float(np.nanmean(told))
    return found


def outcomes_by(seen: Sequence[Batch], label: Callable[[Ask], str]) -> dict[str, list[float]]:
    """Mean outcomes of the graded groups that do not only rate, by a label of their requests."""
    found: dict[str, list[float]] = {}
    for batch in seen:
        for rows, outcomes in zip(batch.groups, batch.outcomes(), strict=True):
            ask = batch.asks[rows[0]]
            if not ask.rating and not np.isnan(outcomes).all():
                found.setdefault(label(ask), []).append(float(np.nanmean(outcomes)))
    return found


def _asked(ask: Ask) -> tuple[int, int, bool]:
    """What asks have in common that a curriculum proposed together for one prompt."""
    return ask.number, ask.round, ask.rating
