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

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rlvr_jax.objectives.arguments import check_at_least, check_count
from rlvr_jax.objectives.rewards.standings import anchor_scores, win_rates

__all__ = [
    "Met",
    "Schedule",
    "anchor",
    "bracket",
    "minimum_degree",
    "play",
    "round_robin",
    "seeded_knockout",
    "swiss",
    "swiss_ranks",
]

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


def anchor(players: int, rounds: Rounds) -> Pairs:
    """Everyone meets the first."""
    return [] if rounds else [(player, 0) for player in range(1, players)]


def round_robin(players: int, rounds: Rounds) -> Pairs:
    """Everyone meets everyone once."""
    if rounds:
        return []
    return [(i, j) for i in range(players) for j in range(i + 1, players)]


def bracket(players: int) -> list[int]:
    """The order of seeds in a knockout, so that the best two meet last: 0, 3, 1, 2 of four."""
    slots = [0]
    while len(slots) < players:
        size = 2 * len(slots)
        slots = [seed for slot in slots for seed in (slot, size - 1 - slot)]
    return [slot for slot in slots if slot < players]


def seeded_knockout(players: int, rounds: Rounds) -> Pairs:
    """The anchor's scores are seeds; then neighbours of the bracket meet, and the better go on.

    Of equal scores the first of the pair goes on. The last of an odd number goes on without a match
    and stands first in the next round.
    Source: ArenaRL, https://github.com/Alibaba-NLP/qqr.
    """
    if not rounds:
        return anchor(players, rounds)
    left = remaining(players, rounds)
    return [(left[place], left[place + 1]) for place in range(0, len(left) - 1, 2)]


def remaining(players: int, rounds: Rounds) -> list[int]:
    """Who is still in a seeded knockout, in the order of the next round."""
    order = np.argsort(-anchor_scores(players, rounds), kind="stable")
    left = [int(order[slot]) for slot in bracket(players)]
    for matches in rounds[1:]:
        won = [m.second if m.second_score > m.first_score else m.first for m in matches]
        left = ([left[-1]] if len(left) % 2 else []) + won
    return left


def swiss(players: int, rounds: Rounds) -> Pairs:
    """⌈log₂ N⌉ rounds in which neighbours of the standings meet who have not met before.

    Standings are by points (a win 1, a draw ½, a round without a match 1), then by the points of
    those one has met. Of an odd number the last who has not yet pauses.
    """
    if len(rounds) >= math.ceil(math.log2(players)):
        return []
    order = swiss_order(players, rounds)
    if players % 2:
        paused = _pauses(players, rounds)
        order.remove(next(p for p in reversed(order) if p not in paused))
    return _neighbours(order, _met(rounds))


def swiss_order(players: int, rounds: Rounds) -> list[int]:
    """Players by their standing after some rounds, the best first."""
    won = swiss_points(players, rounds)
    return sorted(range(players), key=lambda p: (-won[p], -_of_opponents(p, won, rounds), p))


def swiss_points(players: int, rounds: Rounds) -> np.ndarray:
    """Points of each player."""
    won = np.zeros(players)
    for matches in rounds:
        played = set()
        for match in matches:
            played |= {match.first, match.second}
            first = _result(match)
            won[match.first] += first
            won[match.second] += 1 - first
        for player in set(range(players)) - played:
            won[player] += 1
    return won


def swiss_ranks(players: int, rounds: Rounds) -> np.ndarray:
    """1 for the best by points and then by the points of those one has met; equal ones share it."""
    won = swiss_points(players, rounds)
    score = [(won[p], _of_opponents(p, won, rounds)) for p in range(players)]
    return np.array([1 + sum(other > own for other in score) for own in score])


def minimum_degree(degree: int = 2, budget: float = 2.0) -> Schedule:
    """First everyone meets enough others, then neighbours of the standings who have not met.

    Args:
      degree: d, whom everyone meets at least.
      budget: pairs at most, as a multiple of N.
    Raises:
      ValueError: a degree below 1, or a budget below half of it, which does not suffice.
    Source: V_1; degree and budget are ours.
    """
    check_count(1, "minimum_degree", degree=degree)
    check_at_least(degree / 2, "minimum_degree", budget=budget)

    def minimum_degree_of(players, rounds):
        met = _met(rounds)
        if not rounds:
            steps = range(1, min(math.ceil(degree / 2), players // 2) + 1)
            ring = [(i, (i + step) % players) for step in steps for i in range(players)]
            return [tuple(pair) for pair in dict.fromkeys(tuple(sorted(pair)) for pair in ring)]
        left = int(budget * players) - sum(map(len, rounds))
        rates = win_rates(players, rounds)
        order = sorted(range(players), key=lambda p: (-rates[p], p))
        fresh = [pair for pair in _neighbours(order, met) if tuple(sorted(pair)) not in met]
        return fresh[: max(left, 0)]

    return minimum_degree_of


def _result(match):
    if match.first_score == match.second_score or np.isnan(match[2:]).any():
        return 0.5
    return float(match.first_score > match.second_score)


def _met(rounds):
    return {tuple(sorted((m.first, m.second))) for matches in rounds for m in matches}


def _pauses(players, rounds):
    everyone = set(range(players))
    return [
        player
        for matches in rounds
        for player in everyone - {p for m in matches for p in (m.first, m.second)}
    ]


def _of_opponents(player, won, rounds):
    """The points of those whom a player has met."""
    total = 0.0
    for matches in rounds:
        for match in matches:
            if player in (match.first, match.second):
                total += won[match.second if match.first == player else match.first]
    return total


def _neighbours(order, met):
    """Pairs of an order, each with the nearest behind it whom it has not met; where that leaves
    some without a pair, with the next one."""
    fresh = _fresh(list(order[: len(order) // 2 * 2]), met)
    return fresh or [(order[k], order[k + 1]) for k in range(0, len(order) - 1, 2)]


def _fresh(left, met):
    """Pairs of all that are left in which nobody has met before, the first such; None: none."""
    if not left:
        return []
    player, others = left[0], left[1:]
    for other in others:
        if tuple(sorted((player, other))) not in met:
            rest = _fresh([p for p in others if p != other], met)
            if rest is not None:
                return [(player, other), *rest]
    return None
