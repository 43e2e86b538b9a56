"""Computes a formula at a point: exactly as long as it is rational, else in an arithmetic.

`identity` has the arithmetic of this process. A worker has one with as many digits as needed
(`algebra`). A value that is undefined or takes too long to compute is an exception.
"""

import math
import operator
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from rlvr_jax.verifiers.maths.formulas.elementary import (
    INVERSES,
    MAX_ARGUMENT,
    RECIPROCALS,
    SPECIAL,
    TooLarge,
    Undefined,
    exact_root,
)
from rlvr_jax.verifiers.maths.formulas.trees import Node, parts


class Evaluation:
    """Values of formulas at one point.

    `value` sets two binary logarithms. `largest` is that of the largest intermediate number, of
    which much may have cancelled. `smallest` is that of the finest written difference. `complex`
    is True if a root, a logarithm or an inverse function left the real numbers.

    Args:
      arithmetic: computes values that are not rational.
      place: values of the names.
      bits, steps: largest size of an exact number, and largest number of evaluated parts.
      ordered: words (AB) that are names; other words are products of their letters.
    Raises:
      Undefined, TooLarge: by `value`.
    """

    def __init__(
        self,
        arithmetic: Any,
        place: Mapping[str, Fraction],
        *,
        bits: int,
        steps: int,
        ordered: frozenset[str] = frozenset(),
    ):
        self.arithmetic = arithmetic
        self.place: dict[str, Fraction] = dict(place)
        self.bits = bits
        self.ordered = ordered
        self.largest: int = 0
        self.smallest: int = 0
        self.complex: bool = False
        self.steps: int = steps

    def value(self, node: Node) -> Any:
        """The value of a formula: a Fraction or a number of the arithmetic."""
        self.steps -= 1
        if self.steps < 0:
            raise TooLarge
        try:
            found = getattr(self, f"_{node.kind}")(node)
        except (ZeroDivisionError, ValueError) as error:
            raise Undefined from error
        except OverflowError as error:
            raise TooLarge from error
        self._measure(found)
        return found

    def _measure(self, value: Any) -> None:
        if isinstance(value, Fraction):
            if not value:
                return
            self.smallest = min(self.smallest, -value.denominator.bit_length())
            size = value.numerator.bit_length() - value.denominator.bit_length()
            if max(value.numerator.bit_length(), value.denominator.bit_length()) > self.bits:
                raise TooLarge
        elif not value:
            return
        else:
            size = self.arithmetic.size(value)
            if size < self.arithmetic.noise:  # perhaps a rest of a cancellation
                return
        self.largest, self.smallest = max(self.largest, size), min(self.smallest, size)

    def inexact(self, value: Any) -> Any:
        """A number of the arithmetic, also for a Fraction."""
        return self.arithmetic.number(value) if isinstance(value, Fraction) else value

    def both(self, first: Any, second: Any) -> tuple[Any, Any]:
        """Two values of one kind: Fractions if both are, else numbers of the arithmetic."""
        if isinstance(first, Fraction) and isinstance(second, Fraction):
            return first, second
        return self.inexact(first), self.inexact(second)

    def _number(self, node: Node) -> Any:
        return node.value

    def _constant(self, node: Node) -> Any:
        if node.value == "inf":
            raise Undefined
        return self.arithmetic.constants[node.value]

    def _symbol(self, node: Node) -> Any:
        return self.place[node.value]

    def _word(self, node: Node) -> Any:
        if node.value in self.ordered:
            return self.place[node.value]
        found = Fraction(1)
        for letter in node.value:
            value = self.place.get(letter)
            if value is None:
                value = self.arithmetic.constants[letter]
            found = operator.mul(*self.both(found, value))
        return found

    def _sum(self, node: Node) -> Any:
        return self._combined(operator.add, Fraction(0), node)

    def _product(self, node: Node) -> Any:
        return self._combined(operator.mul, Fraction(1), node)

    def _combined(self, combine: Callable[[Any, Any], Any], found: Any, node: Node) -> Any:
        for item in node.items:
            found = combine(*self.both(found, self.value(item)))
            self._measure(found)
        return found

    def _quotient(self, node: Node) -> Any:
        return operator.truediv(*self.both(*map(self.value, node.items)))

    def _power(self, node: Node) -> Any:
        return self.raised(*map(self.value, node.items))

    def _root(self, node: Node) -> Any:
        return self.raised(self.value(node.items[0]), 1 / self.value(node.items[1]))

    def raised(self, base: Any, exponent: Any) -> Any:
        """base^exponent: exact where it is rational and small, real for odd roots of negatives."""
        if not base and not exponent:
            raise Undefined
        if isinstance(exponent, Fraction):
            top, bottom = exponent.numerator, exponent.denominator
            if isinstance(base, Fraction) and abs(top) <= MAX_ARGUMENT:
                size = max(base.numerator.bit_length(), base.denominator.bit_length())
                if bottom == 1 and size * abs(top) <= self.bits:
                    return base**top
                exact = exact_root(base, bottom) if bottom > 1 else None
                if exact is not None and size * abs(top) <= self.bits * bottom:
                    return exact**top
            if self._is_negative(base) and bottom > 1:
                if bottom % 2 and bottom < 10:  # the real root, as of -8
                    size = self.raised(-base, exponent)
                    return -size if top % 2 else size
                self.complex = True
        elif self._is_negative(base):
            self.complex = True
        base, exponent = self.inexact(base), self.inexact(exponent)
        if not base:
            if self.arithmetic.real(exponent) > 0:
                return Fraction(0)
            raise Undefined
        return self.arithmetic.power(base, exponent)

    def _is_negative(self, value: Any) -> bool:
        if isinstance(value, Fraction):
            return value < 0
        return self.arithmetic.real(value) < 0 and not self.arithmetic.imaginary(value)

    def _factorial(self, node: Node) -> Any:
        return self.gamma(self.value(node.items[0]))

    def gamma(self, value: Any) -> Any:
        """value!"""
        if isinstance(value, Fraction) and value.denominator == 1:
            if value < 0:
                raise Undefined
            if value > MAX_ARGUMENT or value > self.bits:
                raise TooLarge
            return Fraction(math.factorial(int(value)))
        value = self.real(value) + 1
        if abs(value) > MAX_ARGUMENT:
            raise TooLarge
        return self.inexact(Fraction(1)) * self.arithmetic.gamma(value)

    def real(self, value: Any) -> Any:
        """The real part of a value whose imaginary part is at most 10^-9 of its size."""
        if isinstance(value, Fraction):
            return self.arithmetic.real(self.arithmetic.number(value))
        if abs(self.arithmetic.imaginary(value)) > 1e-9 * abs(value):
            raise Undefined
        return self.arithmetic.real(value)

    def _call(self, node: Node) -> Any:
        arguments = [self.value(item) for item in node.items]
        if node.value in SPECIAL:
            return SPECIAL[node.value](self, *arguments)
        (argument,) = arguments
        if node.value in RECIPROCALS:
            return 1 / self.function(RECIPROCALS[node.value], argument)
        if node.value in INVERSES:
            one, argument = self.both(Fraction(1), argument)
            return self.function(INVERSES[node.value], one / argument)
        return self.function(node.value, argument)

    def function(self, name: str, argument: Any) -> Any:
        """A function of the arithmetic by its name; notes whether it leaves the real numbers."""
        value = self.inexact(argument)
        real = not self.arithmetic.imaginary(value)
        found = self.arithmetic.functions[name](value)
        # A real number stays real except for rounding errors.
        self.complex |= real and abs(self.arithmetic.imaginary(found)) > 1e-9 * abs(found)
        return found

    def _apply(self, node: Node) -> Any:
        """An unknown function is a separate sinusoid."""
        key = zlib.crc32(node.value.encode())
        phase = Fraction(key % 1009 + 1, 1013)
        for place, item in enumerate(node.items, 1):
            value = self.value(item)
            scale = Fraction(key // 1009 % 997 + 500 * place, 1009)
            first, second = self.both(phase, value)
            phase = first + operator.mul(*self.both(scale, second))
        return 2 + self.function("sin", phase)

    def _series(self, node: Node) -> Any:
        kind, variable = node.value
        if any(part.value == "inf" for item in node.items[:2] for part in parts(item)):
            return self._beyond(node)
        first, last = (self.value(item) for item in node.items[:2])
        if not all(isinstance(x, Fraction) and x.denominator == 1 for x in (first, last)):
            raise Undefined
        if last - first > self.steps:
            raise TooLarge
        found, combine = Fraction(kind == "prod"), operator.mul if kind == "prod" else operator.add
        outer = self.place.get(variable)
        for index in range(int(first), int(last) + 1):
            self.place[variable] = Fraction(index)
            found = combine(*self.both(found, self.value(node.items[2])))
        if outer is not None:
            self.place[variable] = outer
        return found

    def _determinant(self, node: Node) -> Any:
        size = node.value
        cells = [self.value(item) for item in node.items]
        rows = [cells[start : start + size] for start in range(0, size * size, size)]
        return self._expanded(rows)

    def _expanded(self, rows: list[list[Any]]) -> Any:
        if len(rows) == 1:
            return rows[0][0]
        found: Any = Fraction(0)
        for column, entry in enumerate(rows[0]):
            minor = self._expanded([row[:column] + row[column + 1 :] for row in rows[1:]])
            entry, minor = self.both(entry if column % 2 == 0 else -entry, minor)
            found = operator.add(*self.both(found, entry * minor))
        return found

    def _beyond(self, node: Node) -> Any:
        raise TooLarge  # requires a computer algebra system

    _derivative = _integral = _limit = _beyond
