"""What an answer can be, and when two are equal: decided exactly, by a worker only for open TeX.

Equality has three values here, as a worker's answer may still be missing. A single value and a
container of values are never equal, also where the container has one entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

__all__ = [
    "Ask",
    "Container",
    "Expression",
    "Number",
    "Rules",
    "Text",
    "Value",
    "is_gradable",
    "right_side",
    "to_tex",
]

MAX_ITEMS = 64  # of an unordered container, where every pair is compared

# (gold, answer) -> equal? and (gold,) -> readable? None: not known yet.
Ask = Callable[[tuple[str, ...]], bool | None]


@dataclass(frozen=True)
class Number:
    """value · π^pi, as it was written: with a unit, as a decimal."""

    value: Fraction
    pi: bool = False
    unit: str = ""
    decimal: bool = False


@dataclass(frozen=True)
class Text:
    """Plain words, or an option letter."""

    text: str


@dataclass(frozen=True)
class Expression:
    """TeX that only a computer algebra system can compare; `right` of "name = right"."""

    tex: str
    right: Value | None = None


@dataclass(frozen=True)
class Container:
    """Entries in order or not; only containers of one kind are comparable."""

    kind: str
    items: tuple[Value, ...]

    @property
    def ordered(self) -> bool:
        return self.kind not in ("set", "list", "union", "equations")


Value = Number | Text | Expression | Container


@dataclass(frozen=True)
class Rules:
    """How answers are read and compared.

    Fields:
      choice: single letters are options.
      percent_is_number: 50 % equals 50 as well.
      tolerance: |answer - gold| / |gold| where the gold is a decimal.
    """

    choice: bool
    percent_is_number: bool
    tolerance: Fraction

    def equal(self, gold: Value, answer: Value, ask: Ask) -> bool | None:
        """Compares; None while an answer of `ask` is missing."""
        gold, answer = _without_left_sides(gold, answer)
        if gold == answer:
            return True
        if isinstance(gold, Number) and isinstance(answer, Number):
            return self._equal_numbers(gold, answer)
        if isinstance(gold, Text) or isinstance(answer, Text):
            return False
        if isinstance(gold, Container) and isinstance(answer, Container):
            return self._equal_containers(gold, answer, ask)
        if {type(gold), type(answer)} == {Number, Container}:
            return False
        return ask((to_tex(gold), to_tex(answer)))

    def _equal_numbers(self, gold: Number, answer: Number) -> bool:
        if gold.unit == answer.unit:
            return self._close(gold, answer)
        units = {gold.unit, answer.unit}
        if "%" in units:
            if units != {"%", ""}:
                return False
            plain = self.percent_is_number and self._close(gold, answer)
            return plain or self._close(_scaled(gold, "%", 100), _scaled(answer, "%", 100))
        if "°" in units:
            turned = [_scaled(number, "°", 180, pi=True) for number in (gold, answer)]
            return units == {"°", ""} and (self._close(gold, answer) or self._close(*turned))
        return "" in units and self._close(gold, answer)

    def _close(self, gold: Number, answer: Number) -> bool:
        near = self.tolerance * abs(gold.value) if gold.decimal else 0
        if gold.pi == answer.pi:
            return abs(gold.value - answer.value) <= near
        # π is irrational: an exact gold can only agree at 0. Fractions, as floats overflow.
        first, second = (n.value * (Fraction(math.pi) if n.pi else 1) for n in (gold, answer))
        return first == second == 0 or (gold.decimal and abs(first - second) <= near)

    def _equal_containers(self, gold: Container, answer: Container, ask: Ask) -> bool | None:
        kinds = {gold.kind, answer.kind}
        if len(kinds) > 1 and kinds != {"set", "list"}:
            return False
        if gold.ordered:
            if len(gold.items) != len(answer.items):
                return False
            pairs = zip(gold.items, answer.items, strict=True)
            return _all(self.equal(g, a, ask) for g, a in pairs)
        if max(len(gold.items), len(answer.items)) > MAX_ITEMS:
            return False
        rows = [[self.equal(g, a, ask) for a in answer.items] for g in gold.items]
        columns = zip(*rows, strict=True) if rows else [() for _ in answer.items]
        return _all(_any(line) for line in [*rows, *columns])


def _all(values) -> bool | None:
    values = list(values)
    return False if False in values else None if None in values else True


def _any(values) -> bool | None:
    values = list(values)
    return True if True in values else None if None in values else False


def _scaled(number: Number, unit: str, by: int, pi: bool = False) -> Number:
    """The number without its unit, if it has this one."""
    if number.unit != unit:
        return number
    return Number(number.value / by, pi or number.pi, decimal=number.decimal)


def _without_left_sides(gold: Value, answer: Value) -> tuple[Value, Value]:
    """Drops "x =" where the other side is no equation, or starts the same."""
    lefts = [
        value.tex.partition("=")[0] if isinstance(value, Expression) and "=" in value.tex else None
        for value in (gold, answer)
    ]
    if None in lefts or lefts[0] == lefts[1]:
        return right_side(gold) or gold, right_side(answer) or answer
    return gold, answer


def right_side(value: Value) -> Value | None:
    """The right side of \"name = right\"; None for everything else."""
    return value.right if isinstance(value, Expression) else None


def is_gradable(gold: Value, ask: Ask) -> bool | None:
    """Whether all of a gold can be read; None while an answer of `ask` is missing."""
    if isinstance(gold, Expression):
        return ask((gold.tex,))
    if isinstance(gold, Container):
        return _all(is_gradable(item, ask) for item in gold.items)
    return True


def to_tex(value: Value) -> str:
    """Writes a value for the worker."""
    if isinstance(value, Expression):
        return value.tex
    if isinstance(value, Text):
        return value.text
    if isinstance(value, Number):
        top, bottom = value.value.numerator, value.value.denominator
        number = f"{top}" if bottom == 1 else f"\\frac{{{top}}}{{{bottom}}}"
        number += "\\pi" if value.pi else ""
        return number + {"%": "\\%", "°": "°"}.get(value.unit, "")
    items = ",".join(map(to_tex, value.items))
    if value.kind == "union":
        return "\\cup ".join(map(to_tex, value.items))
    if value.kind in ("set", "list", "equations"):
        return f"\\{{{items}\\}}" if items else "\\emptyset"
    return value.kind[0] + items + value.kind[-1]
