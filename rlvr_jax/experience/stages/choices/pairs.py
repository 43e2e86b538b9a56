"""A right and a wrong answer to one prompt, beside each other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.views import with_two_answers
from rlvr_jax.types import is_correct


class Pair(NamedTuple):
    """Rows of one group: its number, a right one and a wrong one."""

    group: int
    right: int
    wrong: int


def mixed_groups(outcomes: np.ndarray) -> np.ndarray:
    """Groups with a right and a wrong answer, bool [G].

    Args:
      outcomes: [G, N], NaN without a verdict.
    """
    known = ~np.isnan(outcomes)
    right = known & is_correct(np.nan_to_num(outcomes))
    return right.any(axis=1) & (known & ~right).any(axis=1)


def contrast_pairs(batch: Batch) -> list[Pair]:
    """One pair of each mixed group: the first right row, and the first of the wrong rows that give
    the commonest wrong answer; without named answers the first wrong row."""
    right = is_correct(batch.rollouts.outcome)
    pairs = []
    for group in np.flatnonzero(mixed_groups(batch.outcomes())):
        rows = batch.groups[group]
        rows = rows[batch.decided[rows]]
        wrong = rows[~right[rows]]
        counts = Counter(batch.grades[row].answer for row in wrong if batch.grades[row].answer)
        common = counts.most_common(1)[0][0] if counts else batch.grades[wrong[0]].answer
        chosen = next(row for row in wrong if batch.grades[row].answer == common)
        pairs.append(Pair(int(group), int(rows[right[rows]][0]), int(chosen)))
    return pairs


def asked_about(batch: Batch, pairs: Sequence[Pair], request: str) -> list[Ask]:
    """Asks for one response about both answers of each pair, beside their prompt."""
    texts = [response.text for response in batch.responses]
    return [
        replace(
            batch.asks[pair.right],
            view=with_two_answers(texts[pair.right], texts[pair.wrong], request),
            samples=1,
        )
        for pair in pairs
    ]
