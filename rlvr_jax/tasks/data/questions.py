"""Questions: prompts with their places, compared, counted and split; each omission is reported.

Two questions are equal if they have the same lines after the same messages. Blanks at line ends,
empty lines at the end, and blanks before a question of one line do not count. Space elsewhere has
a meaning in programs and grids. A question with two answers that are not equal contradicts itself.

"""

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_jax.tasks.base import Prompt

Placed = tuple[str, Prompt]
"""The place of a prompt, for people, and the prompt."""

Same = Callable[[Sequence[tuple[Any, Any]]], Sequence[bool]]
"""(pairs of answers) -> whether the answers of each pair are equal."""

_LEVEL = 3
"""Approximate number of frames between a warning and its cause."""

_NEIGHBOURS = 1e-9
"""Largest distance between the places of two questions with the same words."""

_NAMED = 5
"""Number of places and answers that a sentence names."""


@dataclass
class _Count:
    """The number of rows, and the place of the first one."""

    number: int = 0
    first: str = ""

    def add(self, place: str) -> None:
        self.number, self.first = self.number + 1, self.first or place


class Collected:
    """The questions of one split as they are read; a repeated row is only counted.

    Args:
      name: name of the task, for warnings.
    """

    def __init__(self, name: str):
        self.name = name
        self.rows: list[Placed] = []
        self.count: int = 0
        self._answers: dict[tuple, list[Any]] = {}
        # Only counts and first places: a data set may repeat each question a hundred times.
        self._again = _Count()
        self._left_out: dict[str, _Count] = {}

    def add(self, place: str, prompt: Prompt) -> None:
        """Adds a prompt, unless it is there with exactly the same answer."""
        self.count += 1
        known = self._answers.setdefault(_key(prompt), [])
        if known_answer(prompt) in known:
            self._again.add(place)
            return
        known.append(known_answer(prompt))
        self.rows.append((place, prompt))

    def leave_out(self, place: str, reason: str) -> None:
        """Counts a row that cannot be used; the reason is the end of "N rows …"."""
        self.count += 1
        self._left_out.setdefault(reason, _Count()).add(place)

    def warn(self) -> None:
        """Reports once which questions were left out."""
        if self._left_out:
            total = sum(count.number for count in self._left_out.values())
            parts = [
                f"{c.number} {why} (the first: {c.first})" for why, c in self._left_out.items()
            ]
            warnings.warn(
                f"{self.name}: {total} of {self.count} rows were left out: {', '.join(parts)}",
                stacklevel=_LEVEL,
            )
        _warn_again(self.name, self._again, "")


def consistent(
    name: str, rows: Sequence[Placed], same: Same, drop_contradictions: bool
) -> list[Placed]:
    """Each question once, at its first occurrence.

    Args:
      name: of the task, for messages.
      rows: questions with their places.
      same: decides whether two answers to a question are equal.
      drop_contradictions: leave out questions with unequal answers, with a warning.
    Raises:
      ValueError: there are such questions and they are not left out; counts and names them.
    """
    groups: dict[tuple, list[Placed]] = {}
    for row in rows:
        groups.setdefault(_key(row[1]), []).append(row)
    pairs = [(group[0], other) for group in groups.values() for other in group[1:]]
    equal = same([(known_answer(a), known_answer(b)) for (_, a), (_, b) in pairs]) if pairs else []
    again = _Count()
    for (_, other), held in zip(pairs, equal, strict=True):
        if held:
            again.add(other[0])
    against = {
        _key(first[1]): (first, other)
        for (first, other), held in reversed(list(zip(pairs, equal, strict=True)))
        if not held
    }
    _warn_again(name, again, "with their answers written otherwise ")
    if against:
        named = [
            f"{known_answer(first[1])!r} ({first[0]}) and {known_answer(other[1])!r} ({other[0]})"
            for first, other in list(reversed(against.values()))[:_NAMED]
        ]
        more = ", …" if len(against) > _NAMED else ""
        problem = f"{len(against)} questions have two answers: {'; '.join(named)}{more}"
        if not drop_contradictions:
            raise ValueError(
                f"{name}: a question must have one answer, but {problem}."
                " drop_contradictions=true leaves these questions out"
            )
        warnings.warn(f"{name}: {problem}; they were left out", stacklevel=_LEVEL)
    return [group[0] for key, group in groups.items() if key not in against]


def split_off(
    name: str, rows: Sequence[Placed], fraction: float
) -> tuple[list[Placed], list[Placed]]:
    """The train and the test questions: a hash of its words decides for each question.

    A question stays in its split when rows are added or moved. If a split would be empty, as may
    be in a file of two questions, it gets one question.

    Raises:
      ValueError: there are fewer than two questions, or the fraction is outside (0, 1).
    """
    if not 0 < fraction < 1:
        raise ValueError(f"{name}: held_out must be in (0, 1), got {fraction}")
    place = {text: _place(text) for text in (_lines(prompt.text) for _, prompt in rows)}
    if len(place) < 2:
        raise ValueError(
            f"{name}: rows must have at least two questions, one for training and one for the test"
            f" split, got {len(place)}. Test questions can come from other files (test_path=…)"
        )
    bound = min(max(fraction, math.nextafter(min(place.values()), 1)), max(place.values()))
    parts: tuple[list[Placed], list[Placed]] = ([], [])
    for row in rows:
        parts[place[_lines(row[1].text)] < bound].append(row)
    return parts


def without(rows: Sequence[Placed], others: Iterable[Placed]) -> list[Placed]:
    """The questions whose text is not among the others."""
    known = {_lines(prompt.text) for _, prompt in others}
    return [row for row in rows if _lines(row[1].text) not in known]


def known_answer(prompt: Prompt) -> Any:
    """The answer; for a prompt without one, the answer in its meta."""
    return dict(prompt.meta) if prompt.answer is None else prompt.answer


def _lines(text: str) -> str:
    """A question without the space that does not count."""
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    return "\n".join(lines) if len(lines) > 1 else lines[0].lstrip()


def _key(prompt: Prompt) -> tuple:
    turns = (
        json.dumps({**turn, "content": _lines(turn["content"])}, sort_keys=True, default=str)
        for turn in prompt.messages
    )
    return (_lines(prompt.text), *turns)


def _place(text: str) -> float:
    """A number in [0, 1) that depends on the words, and hardly on the space between them. Questions
    that differ only in space are neighbours, and none changes its split with another version."""
    return _hash(" ".join(text.split())) * (1 - _NEIGHBOURS) + _hash(text) * _NEIGHBOURS


def _hash(text: str) -> float:
    """A number in [0, 1) that depends only on the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def _warn_again(name: str, again: _Count, how: str) -> None:
    if again.number:
        warnings.warn(
            f"{name}: {again.number} questions occur before {how}and were left out, the first"
            f" of {again.first}",
            stacklevel=_LEVEL,
        )
