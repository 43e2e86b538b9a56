"""Comparisons of pairs of responses, recorded in the grades of both."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.tasks import Comparison
from rlvr_jax.types import replace

MOST = 8
"""Largest number of comparisons that are recorded per response."""

RESPONSE, WORDS = 200, 400
"""Largest number of recorded characters of the other response, and of the judge's text."""


class Heard(NamedTuple):
    """The reply of a judge that compared two responses.

    Fields:
      rows: rows of the two responses in a batch, in the order in which they were shown.
      scores: scores of the two, in that order; None if they could not be read.
      words: text of the reply; "" without a reply.
    """

    rows: tuple[int, int]
    scores: tuple[float, float] | None
    words: str


def with_heard(batch: Batch, heard: Sequence[Heard]) -> Batch:
    """The batch with each response's first comparisons, shortened, in `Grade.compared`."""
    with_words = [one for one in heard if one.words]
    if not with_words:
        return batch
    met = sorted({row for one in with_words for row in one.rows})
    taken = batch.take(np.array(met)).responses
    texts = {row: response.text for row, response in zip(met, taken, strict=True)}
    names = np.asarray(batch.rollouts.rollout_id)
    grades = list(batch.grades)
    for one in with_words:
        for place, row in enumerate(one.rows):
            if len(grades[row].compared) >= MOST:
                continue
            other = one.rows[1 - place]
            scores = one.scores and (float(one.scores[place]), float(one.scores[1 - place]))
            comparison = Comparison(
                int(names[other]), texts[other][:RESPONSE], place == 0, scores, one.words[:WORDS]
            )
            grades[row] = replace(grades[row], compared=(*grades[row].compared, comparison))
    return replace(batch, grades=grades)
