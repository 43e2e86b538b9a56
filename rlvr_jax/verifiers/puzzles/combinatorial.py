r"""Longest increasing subsequences and activity scheduling, with one optimum each.

The response has the size as \answer{k} and the optimum as \ids{i1, i2, …}, numbers of the items
from 1 on. Gold: the ids. The size is easily guessed, but the ids are not. So both are reported, and
only both together are correct.

Source: Limits of Generalization in RLVR (the measures); the fraction of a correct prefix is
LCP / longer length, our reading of its length penalty.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from rlvr_jax.verifiers.answers import after_thinking
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.puzzles.notation import read_numbers

# The smallest and the largest number of items.
LEVELS = ((5, 8), (9, 12), (13, 16))
_MAX_NUMBER = 99
# Largest length of activities, and largest start as a multiple of their number.
_MAX_LENGTH = 6
_SPREAD = 3

_DIGITS = re.compile(r"[0-9]{1,6}")


class Optimum(NamedTuple):
    """The largest size, the number of choices that have it, and one of them, as ids from 1 on."""

    size: int
    optima: int
    ids: list[int]


def check(response: str, gold: Sequence[int]) -> Grade:
    """1 if size and ids are correct.

    Metrics: answer (1 if the size is correct), exact (1 if the ids are the gold's), prefix
      (fraction of the ids before the first difference).
    """
    text = after_thinking(response)
    size = (_last(text, r"\answer{") or "").strip()
    listed = (_last(text, r"\ids{") or "").strip().removesuffix(",")
    ids = read_numbers(listed) or []
    answer_text = f"{size}: {listed}".strip(": ") or None
    answer = bool(_DIGITS.fullmatch(size)) and int(size) == len(gold)
    exact = bool(ids) and ids == list(gold)
    same = 0
    while same < min(len(ids), len(gold)) and ids[same] == gold[same]:
        same += 1
    info = {
        "answer": float(answer),
        "exact": float(exact),
        "prefix": same / max(len(ids), len(gold), 1),
    }
    return Grade(float(answer and exact), answer=answer_text, stage="ids", info=info)


def increasing(values: Sequence[int]) -> Optimum:
    """The longest strictly increasing subsequence; ids are positions."""
    lengths: list[int] = []
    counts: list[int] = []
    before: list[int | None] = []
    for i, value in enumerate(values):
        smaller = [j for j in range(i) if values[j] < value]
        best = max((lengths[j] for j in smaller), default=0)
        makers = [j for j in smaller if lengths[j] == best]
        lengths.append(best + 1)
        counts.append(sum(counts[j] for j in makers) or 1)
        before.append(makers[0] if makers else None)
    size = max(lengths, default=0)
    ends = [i for i, length in enumerate(lengths) if length == size]
    ids: list[int] = []
    place = ends[0] if ends else None
    while place is not None:
        ids.append(place + 1)
        place = before[place]
    return Optimum(size, sum(counts[i] for i in ends), ids[::-1])


def schedule(intervals: Sequence[Sequence[int]]) -> Optimum:
    """The most activities [start, finish) that do not overlap; ids in the order of their finish."""
    order = sorted(range(len(intervals)), key=lambda i: intervals[i][1])
    finishes = [intervals[i][1] for i in order]
    best: list[tuple[int, int, list[int]]] = [(0, 1, [])]
    for i in order:
        free = bisect_right(finishes, intervals[i][0], hi=len(best) - 1)  # touching is allowed
        size, optima, ids = best[free]
        taken = size + 1, optima, [*ids, i + 1]
        skipped = best[-1]
        if taken[0] == skipped[0]:
            best.append((taken[0], taken[1] + skipped[1], taken[2]))
        else:
            best.append(max(taken, skipped, key=lambda choice: choice[0]))
    return Optimum(*best[-1])


def generate(random: Random, level: int, kind: str) -> tuple[list[Any], list[int]]:
    """Items with one optimum, and its ids; `kind` is "lis" or "schedule", `level` from 1 on."""
    while True:
        count = random.randint(*LEVELS[level - 1])
        if kind == "lis":
            items = random.sample(range(1, _MAX_NUMBER + 1), count)
            optimum = increasing(items)
        else:
            starts = [random.randint(0, _SPREAD * count) for _ in range(count)]
            items = [[start, start + random.randint(1, _MAX_LENGTH)] for start in starts]
            optimum = schedule(items)
        if optimum.optima == 1:
            return items, optimum.ids


def _last(text: str, command: str) -> str | None:
    """The text between the last such command and the next closing brace."""
    start = text.rfind(command)
    end = text.find("}", start) if start >= 0 else -1
    return text[start + len(command) : end] if end >= 0 else None
