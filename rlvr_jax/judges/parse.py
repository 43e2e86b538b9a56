"""Parsers of judges' replies: the numbers in the last line that is not empty, or None.

An unreadable reply is ungraded, never 0: two numbers instead of one, a number out of range, prose,
or an empty text. Digits are 0 to 9; a dash directly before them is a minus. The other lines may be
in any language.
"""

import re
from collections.abc import Callable, Sequence

from rlvr_jax.types import Criterion
from rlvr_jax.verifiers.texts.words import last_line

Parse = Callable[[str], "tuple[float, ...] | None"]
"""(reply) -> numbers, NaN for a missing one; None: unreadable."""

_NUMBER = re.compile(r"(?<![0-9.])[-−–]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?!\.?[0-9])")
_MINUS = str.maketrans("−–", "--")


def _numbers(line: str) -> list[float]:
    return [float(found.translate(_MINUS)) for found in _NUMBER.findall(line)]


def _of_most(most: float) -> re.Pattern[str]:
    """The end of "7/10", where 10 is the largest number."""
    return re.compile(rf"/\s*{re.escape(f'{most:g}')}(?![0-9.])")


def number(low: float = 0.0, high: float = 10.0) -> Parse:
    """The only number of the last line, in [low, high]; "7/10" is 7 if 10 is `high`."""
    of_most = _of_most(high)
    return _last_numbers("number", 1, low, high, lambda line: of_most.sub("", line))


def two_numbers(low: float = 1.0, high: float = 10.0) -> Parse:
    """The two numbers of the last line, both in [low, high]."""
    return _last_numbers("two_numbers", 2, low, high, lambda line: line)


def strength() -> Parse:
    """Scores of two responses from their comparison in the last line, an integer in -3 … 3.

    It is above 0 if the second response is better, and never 0. The better response has its size as
    score, the other 0.

    Source: Think-RM, https://github.com/IlgeeHong/Think-RM.
    """

    def parse(words):
        found = _numbers(last_line(words))
        if len(found) != 1 or abs(found[0]) not in (1, 2, 3):
            return None
        return max(-found[0], 0.0), max(found[0], 0.0)

    return parse


def _last_numbers(function, count, low, high, cleaned) -> Parse:
    if not low < high:
        raise ValueError(f"{function}: low must be below high, got {low} and {high}")

    def parse(words):
        found = _numbers(cleaned(last_line(words)))
        inside = len(found) == count and all(low <= value <= high for value in found)
        return tuple(found) if inside else None

    return parse


def yes_or_no() -> Parse:
    """1 for YES as the last line, 0 for NO, in any case and with or without a full stop."""

    def parse(words):
        found = last_line(words).rstrip(".").strip().lower()
        return {"yes": (1.0,), "no": (0.0,)}.get(found)

    return parse


def points(rubric: Sequence[Criterion]) -> Parse:
    """A line "name: number" for each criterion, anywhere; the last line of a name counts.

    A criterion without a line, or with a number outside [0, maximum], is NaN; None if all are NaN.
    """
    # Blanks, not ends of lines: the next line is about another criterion.
    lines = [
        re.compile(
            rf"^[ \t*\-#]*{re.escape(criterion.name)}[ \t*]*[:=][ \t*]*(.*)$",
            re.MULTILINE | re.IGNORECASE,
        )
        for criterion in rubric
    ]
    of_most = [_of_most(criterion.maximum) for criterion in rubric]

    def parse(words):
        values = []
        for criterion, line, most in zip(rubric, lines, of_most, strict=True):
            found = [_numbers(most.sub("", text)) for text in line.findall(words)]
            own = found[-1] if found else []
            inside = len(own) == 1 and 0 <= own[0] <= criterion.maximum
            values.append(own[0] if inside else float("nan"))
        return tuple(values) if any(value == value for value in values) else None

    return parse


def as_fractions(parse: Parse, most: Sequence[float]) -> Parse:
    """The numbers of another parser, each divided by its largest value."""

    def fractions(words):
        found = parse(words)
        return found and tuple(value / top for value, top in zip(found, most, strict=True))

    return fractions
