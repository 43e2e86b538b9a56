"""Functions in formulas: those of an arithmetic by their names, and max, gcd, binomials, log.

max, gcd, … get the evaluation that calls them, and the values of their arguments.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import truediv
from typing import Any

from rlvr_jax.verifiers.maths.formulas.names import words

MAX_ARGUMENT = 10**4  # of a factorial, and of an exponent that is computed exactly


class Undefined(ArithmeticError):
    """The formula has no value here."""


class TooLarge(ArithmeticError):
    """The value takes too long to compute in this process."""


def exact_root(base: Fraction, degree: int) -> Fraction | None:
    """The root if it is rational; None if it is not, of a negative base and above degree 64."""
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


_RECIPROCAL = {"cot": "tan", "sec": "cos", "csc": "sin"}
RECIPROCALS = _RECIPROCAL | {f"{name}h": f"{of}h" for name, of in _RECIPROCAL.items()}
INVERSES = {f"arc{name}": f"arc{of}" for name, of in _RECIPROCAL.items()}

_PLAIN = words("sin cos tan sinh cosh tanh")
_IN_LIBRARIES = {
    "ln": "log",
    "exp": "exp",
    **{name: name for name in _PLAIN},
    **{f"arc{name}": f"a{name}" for name in _PLAIN},
    **{f"ar{name}": f"a{name}" for name in _PLAIN if name.endswith("h")},
}


def functions(library: Any) -> dict[str, Callable[..., Any]]:
    """The functions of one number by our names, from cmath or from a context of mpmath."""
    return {name: getattr(library, other) for name, other in _IN_LIBRARIES.items()}


def _log(evaluation: Any, value: Any, base: Any = Fraction(10)) -> Any:
    if isinstance(value, Fraction) and value == 1:
        return Fraction(0)
    return evaluation.function("ln", value) / evaluation.function("ln", base)


def _integer(evaluation: Any, value: Any) -> int:
    if isinstance(value, Fraction):
        return math.floor(value)
    return evaluation.arithmetic.whole(evaluation.real(value))


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
    return truediv(*evaluation.both(evaluation.gamma(total), below[0] * below[1]))


def _sign(evaluation: Any, value: Any) -> Fraction:
    real = evaluation.real(value)
    return Fraction((real > 0) - (real < 0))


SPECIAL: Mapping[str, Callable[..., Any]] = {
    "log": _log,
    "lg": _log,
    "abs": lambda evaluation, value: (
        abs(value) if isinstance(value, Fraction) else evaluation.inexact(Fraction(1)) * abs(value)
    ),
    "cis": lambda evaluation, value: evaluation.function(
        "exp", evaluation.inexact(value) * evaluation.arithmetic.constants["i"]
    ),
    "floor": lambda evaluation, value: Fraction(_integer(evaluation, value)),
    "ceil": lambda evaluation, value: Fraction(-_integer(evaluation, -value)),
    "max": lambda evaluation, *values: max(values, key=evaluation.real),
    "min": lambda evaluation, *values: min(values, key=evaluation.real),
    "gcd": _common(math.gcd),
    "lcm": _common(math.lcm),
    "binom": _choose,
    "C": _choose,
    "P": lambda e, total, part: truediv(*e.both(e.gamma(total), e.gamma(total - part))),
    "sgn": _sign,
    "sign": _sign,
    "sqrt": lambda evaluation, value: evaluation.raised(value, Fraction(1, 2)),
    "Re": lambda e, value: e.inexact(Fraction(1)) * e.arithmetic.real(e.inexact(value)),
    "Im": lambda e, value: e.inexact(Fraction(1)) * e.arithmetic.imaginary(e.inexact(value)),
}
