"""Comparisons in the workers of the mathematics verifier, to as many digits as are needed.

Two formulas are compared as in `identity`, with numbers of mpmath. They are equal if at least 50
digits agree that cancellation has not affected. sympy first computes derivatives, integrals, limits
and infinite sums. Both packages only get the trees that `formula` reads, never a text.
"""

import functools
from fractions import Fraction
from typing import Any

from rlvr_jax.verifiers.maths.formulas import calculus, identity
from rlvr_jax.verifiers.maths.formulas.elementary import TooLarge, Undefined, functions
from rlvr_jax.verifiers.maths.formulas.evaluation import Evaluation
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import Node, free_symbols, parts

_SAME = 50  # agreeing digits that count as equal
_MAX_DIGITS = 12000
_BITS = 2**18
_STEPS = 10**5


def equal_expressions(job: list[str]) -> bool:
    """Compares [gold, answer]; a single [gold] is True if it has a value.

    [gold, answer, kind] compares otherwise. "=" tests whether the formulas are proportional, "<"
    whether their factor is also positive, "/" whether their numerators are proportional. A fraction
    such as "1/200" tests whether they differ by at most that.
    """
    try:
        nodes = [_simplified(read_formula(text)) for text in job[:2]]
        if len(job) == 1:
            if not free_symbols(nodes[0]):
                Evaluation(_Digits(2 * _SAME), {}, bits=_BITS, steps=_STEPS).value(nodes[0])
            return True
        if len(job) == 2:
            return bool(_confirmed(identity.same, *nodes))
        if job[2] == "/":
            nodes = [calculus.numerator(node) for node in nodes]
        if job[2] in ("=", "<", "/"):
            return bool(_confirmed(identity.proportional, *nodes, ordered=job[2] == "<"))
        return _near(*nodes, Fraction(job[2]))
    except MemoryError:  # perhaps of an earlier job; the pool tries again in another worker
        raise
    except Exception:  # an algebra system raises anything where it finds no result
        return False


class _Digits:
    """Numbers of mpmath with a given number of digits."""

    def __init__(self, digits: int):
        import mpmath

        self.mp = mpmath.mp.clone()
        self.mp.dps = digits
        mp = self.mp
        self.noise = -mp.prec // 2
        self.constants = {"pi": mp.mpc(mp.pi), "e": mp.mpc(mp.e), "i": mp.mpc(0, 1)}
        self.functions = functions(mp)
        self.gamma = mp.gamma

    def number(self, value: Fraction) -> Any:
        return self.mp.mpc(value.numerator) / value.denominator

    def power(self, base: Any, exponent: Any) -> Any:
        if abs(exponent) > 10**6:
            raise TooLarge
        return base**exponent

    def real(self, value: Any) -> Any:
        return self.mp.mpc(value).real

    def imaginary(self, value: Any) -> Any:
        """The imaginary part; 0 also if only a rounding error remains."""
        value = self.mp.mpc(value)
        rounding = abs(value.real) * self.mp.mpf(10) ** (10 - self.mp.dps)
        return value.imag if abs(value.imag) > rounding else self.mp.mpf(0)

    def whole(self, value: Any) -> int:
        return int(self.mp.floor(value + self.mp.mpf(10) ** (20 - self.mp.dps)))

    def size(self, value: Any) -> int:
        size = self.mp.mag(abs(value))
        if not isinstance(size, int) or abs(size) > 10**7:
            raise TooLarge
        return size


class _MoreDigits(Exception):
    def __init__(self, digits: int):
        self.digits = digits


def _confirmed(compare, gold: Node, answer: Node, **options: Any) -> bool | None:
    """Compares with more and more digits until cancellation cannot affect the 50 that count."""
    digits = 2 * _SAME
    while True:
        arithmetic = _Digits(digits)

        def evaluate(place, ordered, arithmetic=arithmetic):
            return Evaluation(arithmetic, place, bits=_BITS, steps=_STEPS, ordered=ordered)

        try:
            judge = functools.partial(_agree, arithmetic)
            return compare(gold, answer, evaluate=evaluate, judge=judge, **options)
        except _MoreDigits as more:
            digits = min(max(2 * digits, more.digits), _MAX_DIGITS)


def _agree(
    arithmetic: _Digits, first: Any, second: Any, one: Evaluation, other: Evaluation
) -> bool:
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return first == second
    lost = max(one.largest, other.largest, 0) - min(one.smallest, other.smallest, 0)
    needed = _SAME + 20 + int(lost * 0.30103)
    if needed > _MAX_DIGITS:  # at a point where the values are too large
        raise Undefined
    if needed > arithmetic.mp.dps:
        raise _MoreDigits(needed)
    first, second = one.inexact(first), other.inexact(second)
    scale = max(abs(first), abs(second))
    same = _SAME - int(min(one.smallest, other.smallest, 0) * 0.30103)
    # Both may be 0 where one is a rest of a cancellation.
    most = max(one.largest, other.largest, 0)
    rounding = arithmetic.mp.ldexp(1, most) * arithmetic.mp.mpf(10) ** (20 - arithmetic.mp.dps)
    return bool(abs(first - second) <= max(scale * arithmetic.mp.mpf(10) ** -same, rounding))


def _near(gold: Node, answer: Node, near: Fraction) -> bool:
    arithmetic = _Digits(3 * _SAME)
    pair = [Evaluation(arithmetic, {}, bits=_BITS, steps=_STEPS) for _ in range(2)]
    first, second = pair[0].inexact(pair[0].value(gold)), pair[1].inexact(pair[1].value(answer))
    return bool(abs(first - second) <= arithmetic.real(arithmetic.number(near)))


def _simplified(node: Node | None) -> Node:
    """The formula without calculus: sympy's result as a tree of numbers, if it has one."""
    if node is None:
        raise Undefined
    if any(calculus.is_calculus(part) for part in parts(node)):
        return calculus.simplified(node)
    return node
