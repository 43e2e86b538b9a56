"""How different the answers to one prompt are: numbers in [0, 1] or in tokens, of tokens alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

__all__ = ["Diversity", "distinct_ngrams", "edit_distance"]

Diversity = Callable[[np.ndarray, np.ndarray], float]
"""(tokens [N, T], mask [N, T]) -> a number, larger for answers that differ more."""


def distinct_ngrams(tokens: np.ndarray, mask: np.ndarray, n: int = 3) -> float:
    """Different n-grams of all answers over their number, in [0, 1]; 0 where there are none.

    Args:
      tokens: int [N, T].
      mask: bool [N, T]; what is off it is skipped.
      n: tokens of an n-gram.
    """
    grams = [
        np.lib.stride_tricks.sliding_window_view(row[there], n)
        for row, there in zip(tokens, mask, strict=True)
        if there.sum() >= n
    ]
    if not grams:
        return 0.0
    every = np.concatenate(grams)
    return len(np.unique(every, axis=0)) / len(every)


def edit_distance(tokens: np.ndarray, mask: np.ndarray) -> float:
    """Mean Levenshtein distance of all pairs of answers, in tokens; 0 of a single answer.

    Args:
      tokens: int [N, T].
      mask: bool [N, T]; what is off it is skipped.
    """
    rows = [row[there] for row, there in zip(tokens, mask, strict=True)]
    pairs = list(itertools.combinations(rows, 2))
    return float(np.mean([_levenshtein(*pair) for pair in pairs])) if pairs else 0.0


def _levenshtein(one: np.ndarray, two: np.ndarray) -> int:
    places = np.arange(len(two) + 1)
    row = places
    for number, token in enumerate(one, start=1):
        kept = np.minimum(row[1:] + 1, row[:-1] + (two != token))
        best = np.concatenate([[number], kept])
        # An insertion costs one more than the place before: a running minimum of cost - place.
        row = np.minimum.accumulate(best - places) + places
    return int(row[-1])
