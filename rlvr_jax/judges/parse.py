"""What a judge's words say: numbers of the last line that is not empty, or None.

A judge that cannot be read is no verdict, never a 0: two numbers where one is wanted, a number out
of range, prose, nothing. Digits are 0 to 9, a dash right before them is a minus; the language of
the words before the last line does not matter.
"""

import re
from collections.abc import Callable, Sequence

from rlvr_jax.types import Criterion
from rlvr_jax.verifiers.texts.words import last_line

Parse = Callable[[str], "tuple[float, ...] | None"]
"""(words) -> numbers, NaN for one that is not told; None: they cannot be read."""

_NUMBER = re.compile(r"(?<![0-9.])[-−–]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?!\.?[0-9])")
_MINUS = str.maketrans("−–", "--")


def _numbers(line: str) -> list[float]:
    return [float(found.translate(_MINUS)) for found in _NUMBER.findall(line)]


def number(low: float = 0.0, high: float = 10.0) -> Parse:
    """The one number of the last line, in [low, high]; "7/10" says 7 where 10 is `high`.

    Raises:
      ValueError: low is not below high.
    """
    if not low < high:
        raise ValueError(f"number: low must be below high, got {low} and {high}")
    of_most = re.compile(rf"/\s*{re.escape(f'{high:g}')}(?![0-9.])")

    def parse(words):
        found = _numbers(of_most.sub("", last_line(words)))
        return tuple(found) if len(found) == 1 and low <= found[0] <= high else None

    return parse


def two_numbers(low: float = 1.0, high: float = 10.0) -> Parse:
    """The two numbers of the last line, both in [low, high].

    Raises:
      ValueError: low is not below high.
    """
    if not low < high:
        raise ValueError(f"two_numbers: low must be below high, got {low} and {high}")

    def parse(words):
        found = _numbers(last_line(words))
        inside = len(found) == 2 and all(low <= value <= high for value in found)
        return tuple(found) if inside else None

    return parse


def yes_or_no() -> Parse:
    """1 for a last line YES, 0 for NO, in any case, a full stop allowed."""

    def parse(words):
        said = last_line(words).rstrip(".").strip().lower()
        return {"yes": (1.0,), "no": (0.0,)}.get(said)

    return parse


def points(rubric: Sequence[Criterion]) -> Parse:
    """A line "name: number" for each criterion, anywhere; the last one counts.

    A criterion without a line, or with a number outside of [0, maximum], is NaN; None if all are.
    """
    # Blanks, and no ends of lines: what stands on the next line is said of another criterion.
    lines = [
        re.compile(
            rf"^[ \t*\-#]*{re.escape(criterion.name)}[ \t*]*[:=][ \t*]*(.*)$",
            re.MULTILINE | re.IGNORECASE,
        )
        for criterion in rubric
    ]

    def parse(words):
        told = []
        for criterion, line in zip(rubric, lines, strict=True):
            of_most = re.compile(rf"/\s*{re.escape(f'{criterion.maximum:g}')}(?![0-9.])")
            found = [_numbers(of_most.sub("", text)) for text in line.findall(words)]
            own = found[-1] if found else []
            inside = len(own) == 1 and 0 <= own[0] <= criterion.maximum
            told.append(own[0] if inside else float("nan"))
        return tuple(told) if any(value == value for value in told) else None

    return parse


def as_shares(parse: Parse, most: Sequence[float]) -> Parse:
    """What another parse reads, each number divided by the most that it can be."""

    def shares(words):
        found = parse(words)
        if found is None:
            return None
        return tuple(value / top for value, top in zip(found, most, strict=True))

    return shares
