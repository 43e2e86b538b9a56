"""Numbers as people write them, read exactly: fractions, powers, repeating decimals, π, bases.

Takes what `notation.normalise` writes. A decimal keeps the worth of its last digit, which is how
exactly it was written.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from rlvr_jax.verifiers.units import split_unit
from rlvr_jax.verifiers.values import Number

__all__ = ["read_number"]

MAX_DIGITS = 1000  # of a power that is worked out here; Python prints no more than 4300

_DECIMAL = r"(?:\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_SIGNED = re.compile(r"([-+]?)\s*(\$?)\s*(.*)")
_INTEGER = re.compile(rf"({_DECIMAL})$")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\{(\d+)\}$")
_RATIO = re.compile(rf"({_DECIMAL})/({_DECIMAL})$")
_FRAC = re.compile(rf"\\frac\{{([-+]?{_DECIMAL})\}}\{{([-+]?{_DECIMAL})\}}$")
_MIXED = re.compile(r"(\d+)(?:\s*\\frac\{(\d+)\}\{(\d+)\}|\s+(\d+)/(\d+))$")
_POWER = re.compile(r"(\d{1,6})\^(?:(\d)|\{([-+]?\d{1,3})\}|\(([-+]?\d{1,3})\))$")
_SCIENCE = re.compile(
    rf"({_DECIMAL})(?:\s*(?:\\times|\\cdot|\*)\s*10\^(?:(\d)|\{{([-+]?\d{{1,3}})\}})"
    r"|[eE]([-+]?\d{1,3}))$"
)
# A letter alone is a name: a_{11} is an entry of a sequence.
_BASED = re.compile(r"\(?(\d|[0-9A-Fa-f]{2,60})\)?_\{(\d{1,2})\}$")
_PI = re.compile(
    rf"(?:(?P<a>{_DECIMAL})?\s*(?:\\cdot|\\times|\*)?\s*\\pi\s*(?:/\s*(?P<b>{_DECIMAL}))?"
    rf"|\\frac\{{(?P<c>{_DECIMAL})?\s*\\pi\s*\}}\{{(?P<d>{_DECIMAL})\}}"
    rf"|\\frac\{{(?P<e>{_DECIMAL})\}}\{{(?P<f>{_DECIMAL})\}}\s*\\pi)$"
)


def read_number(text: str) -> Number | None:
    """Reads a number with an optional sign, currency and unit; None if it is something else."""
    text, unit = split_unit(text)
    sign, dollar, text = _SIGNED.match(text).groups()
    if dollar and unit not in ("", "dollar"):
        return None
    number = _unsigned(text)
    if number is None:
        return None
    value = -number.value if sign == "-" else number.value
    return replace(number, value=value, unit="dollar" if dollar else unit)


def _unsigned(text: str) -> Number | None:
    try:
        if match := _INTEGER.match(text):
            return _written(match[1])
        if match := _REPEATING.match(text):
            whole, once, again = match.groups()
            shift = 10 ** len(once)
            repeated = Fraction(int(again), 10 ** len(again) - 1) / shift
            return Number(Fraction(int(whole + once or "0"), shift) + repeated)
        if match := _RATIO.match(text) or _FRAC.match(text):
            return Number(_exact(match[1]) / _exact(match[2]))
        if match := _MIXED.match(text):
            whole, top, bottom = [group for group in match.groups() if group]
            return Number(Fraction(int(whole)) + Fraction(int(top), int(bottom)))
        if match := _POWER.match(text):
            exponent = next(group for group in match.groups()[1:] if group)
            if len(match[1]) * abs(int(exponent)) > MAX_DIGITS:
                return None
            return Number(Fraction(int(match[1])) ** int(exponent))
        if match := _SCIENCE.match(text):
            exponent = next(group for group in match.groups()[1:] if group)
            return _written(match[1], Fraction(10) ** int(exponent))
        if match := _BASED.match(text):
            return Number(Fraction(int(match[1], int(match[2]))))
        if match := _PI.match(text):
            part = match.groupdict()
            top = part["a"] or part["c"] or part["e"] or "1"
            bottom = part["b"] or part["d"] or part["f"] or "1"
            return Number(_exact(top) / _exact(bottom), pi=True)
    except (ValueError, ZeroDivisionError):
        pass
    return None


def _written(digits: str, scale: Fraction = Fraction(1)) -> Number:
    """A number without a fraction bar; behind a point, its last digit has a worth."""
    behind = digits.partition(".")[2]
    last = scale / 10 ** len(behind) if behind else Fraction(0)
    return Number(_exact(digits) * scale, last_digit=last)


def _exact(text: str) -> Fraction:
    return Fraction(re.sub("[, ]", "", text).rstrip(".") or "0")
