"""Printed lines and JSON values of a program, compared with the expected ones.

Both sides are data, not code. Time is linear in their length: keys of JSON objects are texts.
"""

import json
import math
from decimal import Decimal
from typing import Any

_LONG = 1000  # digits


def same_output(printed: str, wanted: str, tolerance: float | None = None) -> bool:
    """Whether two texts have equal lines of tokens between white space; empty lines at the end do
    not count.

    Args:
      tolerance: relative, for tokens that are numbers; None: tokens must be equal texts.
    """
    left, right = _lines(printed), _lines(wanted)
    if tolerance is None or len(left) != len(right):
        return left == right
    return all(
        len(a) == len(b) and all(_close(x, y, tolerance) for x, y in zip(a, b, strict=True))
        for a, b in zip(left, right, strict=True)
    )


def same_value(text: str, wanted: Any, tolerance: float | None = None) -> bool:
    """Whether a JSON text is a JSON value, types included: 1 is not 1.0, and True is not 1.

    Args:
      tolerance: relative, for numbers of any type; None: they must be equal.
    """
    try:
        return _same(json.loads(text, parse_int=_integer), wanted, tolerance)
    except (ValueError, RecursionError):
        return False


def _integer(text: str) -> int | Decimal:
    """An integer; a long one as a decimal, which can be read in linear time."""
    return int(text) if len(text) <= _LONG else Decimal(text)


def _same(value: Any, wanted: Any, tolerance: float | None) -> bool:
    if tolerance is not None and _is_number(value) and _is_number(wanted):
        return _within(value, wanted, tolerance)
    if isinstance(value, Decimal):
        return type(wanted) is int and value == wanted
    if type(value) is not type(wanted):
        return False
    if isinstance(wanted, list):
        return len(value) == len(wanted) and all(
            _same(a, b, tolerance) for a, b in zip(value, wanted, strict=True)
        )
    if isinstance(wanted, dict):
        return value.keys() == wanted.keys() and all(
            _same(value[key], wanted[key], tolerance) for key in wanted
        )
    return value == wanted or (value != value and wanted != wanted)  # NaN was expected


def _lines(text: str) -> list[list[str]]:
    lines = [line.split() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _close(token: str, wanted: str, tolerance: float) -> bool:
    if token == wanted:
        return True
    try:
        return _within(float(token), float(wanted), tolerance)
    except ValueError:
        return False


def _within(number: float, wanted: float, tolerance: float) -> bool:
    try:
        return math.isclose(number, wanted, rel_tol=tolerance, abs_tol=0.0)
    except OverflowError:  # an integer that no float holds
        return number == wanted


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
