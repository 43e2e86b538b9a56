"""Points of a rubric's items, as a judge's answers give them.

The last non-empty line of an answer is an integer of up to six digits, 0 … the item's maximum, with
"Score:" or "Score =" before it, "/ maximum" and a full stop behind it allowed.

Source: https://github.com/minnesotanlp/mpo, where an unreadable item is 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rlvr_jax.verifiers.texts.lines import last_line

__all__ = ["Item", "Rubric", "parse_score", "rewritten", "share_of_points", "sum_of_points"]

MOST_ITEMS, MOST_WORDS = 20, 300

_SCORE = re.compile(
    r"(?:score\s*[:=]\s*)?([0-9]{1,6})\s*(?:/\s*([0-9]{1,6})\s*)?\.?", re.IGNORECASE
)


@dataclass(frozen=True)
class Item:
    """One item of a rubric: what the judge is asked, and the most points."""

    text: str
    maximum: int


@dataclass(frozen=True)
class Rubric:
    """Items, and how often they were rewritten."""

    items: tuple[Item, ...]
    version: int = 0


def parse_score(text: str, maximum: int) -> int | None:
    """The points that an answer gives; None: unreadable."""
    found = _SCORE.fullmatch(last_line(text))
    if found is None or (found[2] is not None and int(found[2]) != maximum):
        return None
    points = int(found[1])
    return points if points <= maximum else None


def sum_of_points(scores: Sequence[int | None], maxima: Sequence[int]) -> int | None:
    """The published reward, in which unreadable is 0 and longer rubrics pay more; None if an answer
    is missing."""
    if len(scores) != len(maxima):
        return None
    return sum(score or 0 for score in scores)


def share_of_points(scores: Sequence[int | None], maxima: Sequence[int]) -> float | None:
    """Mean of score / maximum over the readable items; None without any, or if one is missing."""
    if len(scores) != len(maxima):
        return None
    shares = [s / most for s, most in zip(scores, maxima, strict=True) if s is not None]
    return sum(shares) / len(shares) if shares else None


def rewritten(rubric: Rubric, items: Sequence[Item]) -> Rubric | None:
    """The next version of a rubric; None where the items make none: 1 to 20, each of a positive
    maximum and under 300 words, no two of equal text."""
    texts = [item.text.strip() for item in items]
    if not 1 <= len(items) <= MOST_ITEMS or len(set(texts)) < len(texts):
        return None
    if any(not text or len(text.split()) >= MOST_WORDS for text in texts):
        return None
    if any(item.maximum < 1 for item in items):
        return None
    return Rubric(tuple(items), rubric.version + 1)
