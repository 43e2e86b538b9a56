"""Functions of formulas that are no single function of an arithmetic: max, gcd, binomials, log.

Each takes the evaluation that asks, and the values of its arguments.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

MAX_ARGUMENT = 10**4  # of a factorial, and of an exponent that is worked out exactly


class Undefined(ArithmeticError):
    """The formula has no value here."""


class TooLarge(ArithmeticError):
    """Finding the value is not for this process."""


def exact_root(base: Fraction, degree: int) -> Fraction | None:
    if base < 0 or degree > 64:
        return None
    found = []
    for number in (base.numerator, base.denominator):
        root = _integer_root(number, degree)
        if root**degree != number:
            return None
        found.append(root)
    return Fraction(*found)


def _integer_root(number: int, degree: int) -> int:
    if degree == 2:
        return math.isqrt(number)
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


RECIPROCALS = {
    "cot": "tan",
    "sec": "cos",
    "csc": "sin",
    "coth": "tanh",
    "sech": "cosh",
    "csch": "sinh",
}
INVERSES = {"arccot": "arctan", "arcsec": "arccos", "arccsc": "arcsin"}


def _log(evaluation: Any, value: Any, base: Any = Fraction(10)) -> Any:
    if isinstance(value, Fraction) and value == 1:
        return Fraction(0)
    return evaluation.function("ln", value) / evaluation.function("ln", base)


def _size(evaluation: Any, value: Any) -> Any:
    return (
        abs(value) if isinstance(value, Fraction) else evaluation.inexact(Fraction(1)) * abs(value)
    )


def _cis(evaluation: Any, value: Any) -> Any:
    return evaluation.function(
        "exp", evaluation.inexact(value) * evaluation.arithmetic.constants["i"]
    )


def _integer(evaluation: Any, value: Any) -> int:
    if isinstance(value, Fraction):
        return math.floor(value)
    return evaluation.arithmetic.whole(evaluation.real(value))


def _chosen(choose: Callable) -> Callable:
    def chosen(evaluation: Any, *values: Any) -> Any:
        return choose(values, key=evaluation.real)

    return chosen


def _common(combine: Callable[..., int]) -> Callable:
    def common(evaluation: Any, *values: Any) -> Fraction:
        del evaluation
        if not all(isinstance(x, Fraction) and x.denominator == 1 for x in values):
            raise Undefined
        return Fraction(combine(*map(int, values)))

    return common


def _choose(evaluation: Any, total: Any, part: Any) -> Any:
    whole = all(isinstance(x, Fraction) and x.denominator == 1 for x in (total, part))
    if whole and total >= 0:
        if total > MAX_ARGUMENT or total > evaluation.bits:
            raise TooLarge
        return Fraction(math.comb(int(total), int(part))) if part >= 0 else Fraction(0)
    below = evaluation.both(evaluation.gamma(part), evaluation.gamma(total - part))
    first, second = evaluation.both(evaluation.gamma(total), below[0] * below[1])
    return first / second


def _arrange(evaluation: Any, total: Any, part: Any) -> Any:
    first, second = evaluation.both(evaluation.gamma(total), evaluation.gamma(total - part))
    return first / second


def _sign(evaluation: Any, value: Any) -> Fraction:
    real = evaluation.real(value)
    return Fraction((real > 0) - (real < 0))


SPECIAL: Mapping[str, Callable[..., Any]] = {
    "log": _log,
    "lg": _log,
    "abs": _size,
    "cis": _cis,
    "floor": lambda evaluation, value: Fraction(_integer(evaluation, value)),
    "ceil": lambda evaluation, value: Fraction(-_integer(evaluation, -value)),
    "max": _chosen(max),
    "min": _chosen(min),
    "gcd": _common(math.gcd),
    "lcm": _common(math.lcm),
    "binom": _choose,
    "C": _choose,
    "P": _arrange,
    "sgn": _sign,
    "sign": _sign,
    "sqrt": lambda evaluation, value: evaluation.raised(value, Fraction(1, 2)),
    "Re": lambda evaluation, value: (
        evaluation.arithmetic.number(Fraction(1))
        * evaluation.arithmetic.real(evaluation.inexact(value))
    ),
    "Im": lambda evaluation, value: (
        evaluation.arithmetic.number(Fraction(1))
        * evaluation.arithmetic.imaginary(evaluation.inexact(value))
    ),
}
