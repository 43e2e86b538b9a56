"""Tournaments: which pairs of N players meet, and what is made of how they did.

    rounds = play(4, seeded_knockout, compare)      compare: pairs -> two scores each
    rewards = place_rewards(knockout_places(4, rounds))

A schedule says the pairs of the next round, given all rounds before; [] ends the tournament. It
knows neither texts nor models: whatever gives two numbers of a pair may compare, a round at a time.
Players are places in a group, 0 … N - 1. A pair whose scores are NaN moves nobody up or down.

| schedule | pairs | who meets |
|---|---|---|
| `anchor` | N - 1 | everyone the first |
| `round_robin` | N (N - 1) / 2 | everyone everyone |
| `seeded_knockout` | 2 (N - 1) | everyone the first, for the seeds; then winners |
| `swiss` | N / 2 a round, ⌈log₂ N⌉ rounds | neighbours in the standings |
| `minimum_degree(d, b)` | b N | everyone d others, then neighbours in the standings |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Met", "Schedule", "play", "round_robin"]

Pairs = list[tuple[int, int]]
Compare = Callable[[Pairs], np.ndarray]
"""(pairs) -> [n, 2], the scores of both of each; NaN where nobody can say."""


class Met(NamedTuple):
    """A pair that has met, and their scores."""

    first: int
    second: int
    first_score: float
    second_score: float


Rounds = Sequence[Sequence[Met]]
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
