"""Rewrites of a question that are harder and keep its answer, as far as a policy can tell."""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Evolution(NamedTuple):
    """Of attempts 1, 2, …: the last accepted attempt before each (0: the seed), the accepted ones,
    and the accepted one of the lowest count, the earliest of equals (0: none)."""

    parent: list[int]
    accepted: list[int]
    best: int


def evolve(
    counts: Sequence[int],
    scores: Sequence[float],
    seed_count: int,
    low: int = 4,
    gap: int = 1,
    least_score: float = 8.0,
) -> Evolution:
    """Which attempts at rewriting are accepted: a good score, and low ≤ count < seed count - gap.

    Args:
      counts: right answers of a fixed policy to each attempt, by the answer of the seed.
      scores: of a judge.
      seed_count: right answers to the seed, in every test.
      low: count from which on someone can still reach the answer; see `least_count`.
      gap: by which a rewrite must be harder.
      least_score: that is good.
    Raises:
      ValueError: other numbers of counts and scores.
    Source: SynthRL, https://github.com/NUS-TRAIL/SynthRL.
    """
    if len(counts) != len(scores):
        raise ValueError(
            f"evolve: counts and scores must be as many, got {len(counts)} and {len(scores)}"
        )
    parent, accepted, last = [], [], 0
    for attempt, (count, score) in enumerate(zip(counts, scores, strict=True), start=1):
        parent.append(last)
        if score >= least_score and low <= count < seed_count - gap:
            accepted.append(attempt)
            last = attempt
    best = min(accepted, key=lambda attempt: (counts[attempt - 1], attempt), default=0)
    return Evolution(parent, accepted, best)


def least_count(number: int, rate: float) -> int:
    """The smallest count above what guessing gives: n r + 3 √(n r (1 - r)); ours.

    Args:
      number: n, answers.
      rate: r, chance of a guess, in [0, 1].
    Raises:
      ValueError: a rate outside [0, 1].
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"least_count: rate must be in [0, 1], got {rate}")
    return math.floor(number * rate + 3 * math.sqrt(number * rate * (1 - rate))) + 1
