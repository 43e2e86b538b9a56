"""Pairs of a correct and an incorrect response to one prompt."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.requests import SampleRequest, View
from rlvr_jax.types import is_correct


class Pair(NamedTuple):
    """A group's number, a correct row of it and an incorrect one."""

    group: int
    correct: int
    incorrect: int


def mixed_groups(outcomes: np.ndarray) -> np.ndarray:
    """Groups with correct and incorrect responses, bool [G]; outcomes [G, N], NaN if ungraded."""
    known = ~np.isnan(outcomes)
    correct = known & is_correct(np.nan_to_num(outcomes))
    return correct.any(axis=1) & (known & ~correct).any(axis=1)


def contrast_pairs(batch: Batch) -> list[Pair]:
    """One pair of each mixed group: the first correct row and an incorrect one.

    The incorrect row is the first one with the most frequent incorrect answer. If no answers are
    known, it is the first incorrect row.
    """
    correct = is_correct(batch.rollouts.outcome)
    pairs = []
    for group in np.flatnonzero(mixed_groups(batch.outcomes())):
        rows = batch.groups[group]
        rows = rows[batch.decided[rows]]
        incorrect = rows[~correct[rows]]
        counts = Counter(batch.grades[row].answer for row in incorrect if batch.grades[row].answer)
        common = counts.most_common(1)[0][0] if counts else batch.grades[incorrect[0]].answer
        chosen = next(row for row in incorrect if batch.grades[row].answer == common)
        pairs.append(Pair(int(group), int(rows[correct[rows]][0]), int(chosen)))
    return pairs


def asked_about(
    batch: Batch, pairs: Sequence[Pair], view: Callable[[str, str], View]
) -> list[SampleRequest]:
    """Requests for one response to each pair.

    Args:
      view: (correct response, incorrect response) -> how the pair is shown with its prompt.
    """
    texts = [response.text for response in batch.responses]
    return [
        replace(
            batch.requests[pair.correct],
            view=view(texts[pair.correct], texts[pair.incorrect]),
            samples=1,
        )
        for pair in pairs
    ]
