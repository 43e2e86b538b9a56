"""Numbers with units: equal exactly, or as precisely as a decimal gold is written."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from rlvr_jax.verifiers.maths.units import factor
from rlvr_jax.verifiers.maths.values import Number

_TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True, kw_only=True)
class NumberRules:
    """Rules for the comparison of numbers.

    Fields:
      percent_is_number: 50 % also equals 50.
      tolerance: bound of |answer - gold| / |gold| for a decimal gold. None: 10^-6, and at most half
        of the gold's last digit.
    """

    percent_is_number: bool = False
    tolerance: Fraction | None = None

    def equal_numbers(self, gold: Number, answer: Number) -> bool:
        if gold.based and answer.based:
            return gold.based == answer.based
        if gold.based:
            return answer.tex.lower().lstrip("0") == gold.based[0].lstrip("0")
        if gold.modulus and answer.modulus:
            if gold.modulus != answer.modulus:
                return False
            return (gold.value - answer.value) % gold.modulus == 0
        if "%" in (gold.unit, answer.unit) and gold.unit != answer.unit:
            if gold.unit and answer.unit:
                return False
            plain = self.percent_is_number and self._close(gold, answer)
            return plain or self._close(_scaled(gold, "%", 100), _scaled(answer, "%", 100))
        scale = factor(gold.unit, answer.unit)
        if scale is None:
            return False
        if self._close(gold, replace(answer, value=answer.value * scale)):
            return True
        turned = [_scaled(number, "°", 180, pi=True) for number in (gold, answer)]
        return {gold.unit, answer.unit} == {"°", ""} and self._close(*turned)

    def near(self, gold: Number) -> Fraction:
        """Largest difference between an answer and a decimal."""
        if not gold.last_digit:
            return Fraction(0)
        if self.tolerance is None:
            return min(_TOLERANCE * abs(gold.value), gold.last_digit / 2)
        return self.tolerance * abs(gold.value)

    def _close(self, gold: Number, answer: Number) -> bool:
        near = self.near(gold)
        if gold.pi == answer.pi:
            return abs(gold.value - answer.value) <= near
        # π is irrational: an exact gold can only agree at 0. Fractions, because floats overflow.
        first, second = (n.value * (Fraction(math.pi) if n.pi else 1) for n in (gold, answer))
        return first == second == 0 or (bool(near) and abs(first - second) <= near)


def _scaled(number: Number, unit: str, by: int, pi: bool = False) -> Number:
    """The number without its unit, if it has this one."""
    if number.unit != unit:
        return number
    value, last_digit = number.value / by, number.last_digit / by
    return replace(number, value=value, last_digit=last_digit, unit="", pi=pi or number.pi)
