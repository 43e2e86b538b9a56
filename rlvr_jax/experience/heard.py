"""What was said of pairs of answers, kept beside each of the two."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.tasks import Comparison
from rlvr_jax.types import replace

__all__ = ["Heard", "with_heard"]

MOST = 8
"""Comparisons that are kept of an answer."""

RESPONSE, WORDS = 200, 400
"""Characters that are kept of the other answer, and of the words."""


class Heard(NamedTuple):
    """What came back when two answers were shown.

    Fields:
      rows: of a batch, in the order in which they were shown.
      scores: of the two, in that order; None where they could not be read.
      words: what was said; "" where nothing came.
    """

    rows: tuple[int, int]
    scores: tuple[float, float] | None
    words: str


def with_heard(batch: Batch, heard: Sequence[Heard]) -> Batch:
    """The batch, whose grades hold what was said of each answer beside others (`Grade.compared`);
    the first few of them, cut to what a reader looks at.
    """
    said = [one for one in heard if one.words]
    if not said:
        return batch
    met = sorted({row for one in said for row in one.rows})
    taken = batch.take(np.array(met)).responses
    texts = {row: response.text for row, response in zip(met, taken, strict=True)}
    names = np.asarray(batch.rollouts.rollout_id)
    grades = list(batch.grades)
    for one in said:
        for place, row in enumerate(one.rows):
            if len(grades[row].compared) >= MOST:
                continue
            other = one.rows[1 - place]
            scores = None
            if one.scores is not None:
                scores = (float(one.scores[place]), float(one.scores[1 - place]))
            comparison = Comparison(
                int(names[other]), texts[other][:RESPONSE], place == 0, scores, one.words[:WORDS]
            )
            grades[row] = replace(grades[row], compared=(*grades[row].compared, comparison))
    return replace(batch, grades=grades)
