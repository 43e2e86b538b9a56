"""What is made of how players did in a tournament: scores, places, rewards, differences.

A round is a sequence of (first, second, score of the first, score of the second). A pair whose
scores are NaN moves nobody up or down.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["Met", "Schedule", "play", "round_robin"]

Match = tuple[int, int, float, float]


Rounds = Sequence[Sequence[Match]]


Scores = Float[np.ndarray, "N"]


def scored_matches(rounds):
    """The matches of all rounds that have a result."""
    for matches in rounds:
        for match in matches:
            if not np.isnan(match[2:]).any():
                yield match


Pairs = list[tuple[int, int]]


Compare = Callable[[Pairs], np.ndarray]
"""(pairs) -> [n, 2], the scores of both of each; NaN where nobody can say."""


class Met(NamedTuple):
    """A pair that has met, and their scores."""

    first: int
    second: int
    first_score: float
    second_score: float


Schedule = Callable[[int, Rounds], Pairs]


def play(players: int, schedule: Schedule, compare: Compare) -> list[list[Met]]:
    """All rounds of a tournament.

    Args:
      players: N; of less than two nobody meets.
      schedule: of this module.
      compare: asked once a round.
    """
    rounds: list[list[Met]] = []
    while players > 1 and (pairs := schedule(players, rounds)):
        scores = np.asarray(compare(pairs), float).reshape(len(pairs), 2)
        rounds.append([Met(*pair, *own) for pair, own in zip(pairs, scores.tolist(), strict=True)])
    return rounds


def round_robin(players: int, rounds: Rounds) -> Pairs:
    """Everyone meets everyone once."""
    if rounds:
        return []
    return [(i, j) for i in range(players) for j in range(i + 1, players)]
