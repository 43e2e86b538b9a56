"""Checks of the numbers that a part is made with. NaN passes none of them."""

import math
import operator
from collections.abc import Callable, Mapping


def check_finite(function: str, /, **numbers: float) -> None:
    """Refuses what is infinite; for factors of any sign."""
    _check(function, "finite", math.isfinite, numbers)


def check_positive(function: str, /, **numbers: float) -> None:
    """Refuses 0, what is below, and infinity."""
    _check(function, "positive", lambda value: value > 0, numbers)
    check_finite(function, **numbers)


def check_at_least(least: float, function: str, /, **numbers: float) -> None:
    """Refuses what is below `least`, and infinity."""
    _check(function, f"at least {least:g}", lambda value: value >= least, numbers)
    check_finite(function, **numbers)


def check_bound(function: str, /, **numbers: float) -> None:
    """Refuses 0 and what is below; infinity is no bound."""
    _check(function, "positive", lambda value: value > 0, numbers)


def check_count(least: int, function: str, /, **numbers: int) -> None:
    """Refuses what is no whole number, or below `least`."""
    _check(function, "a whole number", _is_whole, numbers)
    _check(function, f"at least {least}", lambda value: value >= least, numbers)


def check_within(low: float, high: float, function: str, /, **numbers: float) -> None:
    """Refuses what is outside [low, high]."""
    _check(function, f"in [{low:g}, {high:g}]", lambda value: low <= value <= high, numbers)


def _is_whole(value: int) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _check(
    function: str, wanted: str, passes: Callable[[float], bool], numbers: Mapping[str, float]
) -> None:
    for name, value in numbers.items():
        if not passes(value):
            raise ValueError(f"{function}: {name} must be {wanted}, got {value}")
