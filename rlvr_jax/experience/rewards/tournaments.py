"""Tournaments of the responses to a prompt: schedules and their matches.

A round is a sequence of `Met`. A pair whose scores are NaN has no result.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["round_robin"]


class Met(NamedTuple):
    """A pair of players that were compared, and their scores."""

    first: int
    second: int
    first_score: float
    second_score: float


Rounds = Sequence[Sequence[Met]]
Scores = Float[np.ndarray, "N"]
Pairs = list[tuple[int, int]]
Schedule = Callable[[int, Rounds], Pairs]
"""(players, rounds) -> pairs of the next round; none after the last."""


def scored_matches(rounds: Rounds) -> Iterator[Met]:
    """The matches of all rounds that have a result."""
    return (m for matches in rounds for m in matches if not np.isnan(m[2:]).any())


def play(
    players: Sequence[Sequence[int]], schedule: Schedule, compare: Callable[[Pairs], np.ndarray]
) -> list[list[list[Met]]]:
    """The rounds of one tournament per group; equal rounds of all groups are compared together.

    Args:
      players: ids of the players of each group; a group of one has no games.
      compare: (pairs of ids) -> [n, 2], the scores of both; NaN where they are unknown.
    """
    rounds: list[list[list[Met]]] = [[] for _ in players]
    while True:
        asked = [
            schedule(len(group), own) if len(group) > 1 else []
            for group, own in zip(players, rounds, strict=True)
        ]
        pairs = [
            (int(group[i]), int(group[j]))
            for group, own in zip(players, asked, strict=True)
            for i, j in own
        ]
        if not pairs:
            return rounds
        scores = iter(np.asarray(compare(pairs), float).tolist())
        for own, new in zip(rounds, asked, strict=True):
            if new:
                own.append([Met(*pair, *next(scores)) for pair in new])


def round_robin(players: int, rounds: Rounds) -> Pairs:
    """A tournament in which every player meets every other player once."""
    return [] if rounds else list(itertools.combinations(range(players), 2))
