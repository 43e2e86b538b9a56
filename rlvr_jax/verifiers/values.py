"""What an answer can be, and when two are equal: decided exactly, by a worker only for open TeX.

Equality has three values here, as a worker's answer may still be missing. A single value and a
container of values are never equal, also where the container has one entry. Of an equation that
names a value ("x = 5") the value counts, where the other side is no equation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

__all__ = [
    "Ask",
    "Container",
    "Equation",
    "Expression",
    "Number",
    "Rules",
    "Steps",
    "Text",
    "Value",
    "is_gradable",
    "to_tex",
]

MAX_ITEMS = 64  # of an unordered container, where every pair is compared
_TOLERANCE = Fraction(1, 10**6)

# (gold, answer) -> equal? and (gold,) -> readable? None: not known yet.
Ask = Callable[[tuple[str, ...]], bool | None]


@dataclass(frozen=True)
class Number:
    """value · π^pi, as it was written: with a unit, as a decimal.

    Fields:
      last_digit: worth of the last written digit of a decimal, 0.01 of 2.50; 0 of anything else.
    """

    value: Fraction
    pi: bool = False
    unit: str = ""
    last_digit: Fraction = Fraction(0)


@dataclass(frozen=True)
class Text:
    """Plain words, or an option letter."""

    text: str


@dataclass(frozen=True)
class Expression:
    """TeX that only a computer algebra system can compare; the unit at its end apart."""

    tex: str
    unit: str = ""


@dataclass(frozen=True)
class Steps:
    """The last sides of "x = 6/2 = 3": what is equal to each of them is equal to all."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Equation:
    """left = …, and the value this gives to the left side.

    Fields:
      tex: the whole.
      left: its first side.
      right: the value; None if the equation gives none, as 2x = 18 and 5 = 5.
      whole: the value is all that the equation says, as in x = 5; of x² + y² = 4 it is not.
    """

    tex: str
    left: str
    right: Value | None
    whole: bool


@dataclass(frozen=True)
class Container:
    """Entries in order or not; only containers of one kind are comparable, and sets with lists.

    Fields:
      kind: the two brackets of a tuple or an interval; "set", "list", "union", "equations";
        rows×columns of a matrix.
    """

    kind: str
    items: tuple[Value, ...]

    @property
    def ordered(self) -> bool:
        return self.kind not in ("set", "list", "union", "equations")


Value = Number | Text | Expression | Steps | Equation | Container


@dataclass(frozen=True)
class Rules:
    """How answers are read and compared.

    Fields:
      choice: single letters are options.
      percent_is_number: 50 % equals 50 as well.
      tolerance: |answer - gold| / |gold| where the gold is a decimal; None is 10^-6, but at most
        half of the last digit that the gold has.
    """

    choice: bool = False
    percent_is_number: bool = False
    tolerance: Fraction | None = None

    def equal(self, gold: Value, answer: Value, ask: Ask) -> bool | None:
        """Compares; None while an answer of `ask` is missing."""
        if gold == answer:
            return True
        if isinstance(gold, Equation) and isinstance(answer, Equation):
            if gold.left == answer.left and gold.right and answer.right:
                return self.equal(gold.right, answer.right, ask)
            return ask((gold.tex, answer.tex))
        if isinstance(gold, Equation):
            return self.equal(gold.right, answer, ask) if gold.right and gold.whole else False
        if isinstance(answer, Equation):
            return self.equal(gold, answer.right, ask) if answer.right else False
        if isinstance(gold, Steps):
            return _all(self.equal(item, answer, ask) for item in gold.items)
        if isinstance(answer, Steps):
            return _all(self.equal(gold, item, ask) for item in answer.items)
        if isinstance(gold, Number) and isinstance(answer, Number):
            return self._equal_numbers(gold, answer)
        if isinstance(gold, Text) or isinstance(answer, Text):
            return False
        if isinstance(gold, Container) and isinstance(answer, Container):
            return self._equal_containers(gold, answer, ask)
        if {type(gold), type(answer)} == {Number, Container}:
            return False
        if len({unit for unit in map(_unit, (gold, answer)) if unit}) > 1:
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
        near = Fraction(0)
        if gold.last_digit and self.tolerance is None:
            near = min(_TOLERANCE * abs(gold.value), gold.last_digit / 2)
        elif gold.last_digit:
            near = self.tolerance * abs(gold.value)
        if gold.pi == answer.pi:
            return abs(gold.value - answer.value) <= near
        # π is irrational: an exact gold can only agree at 0. Fractions, as floats overflow.
        first, second = (n.value * (Fraction(math.pi) if n.pi else 1) for n in (gold, answer))
        return first == second == 0 or (bool(near) and abs(first - second) <= near)

    def _equal_containers(self, gold: Container, answer: Container, ask: Ask) -> bool | None:
        kinds = {gold.kind, answer.kind}
        if len(kinds) > 1 and kinds != {"set", "list"}:
            return False
        repeats = not kinds & {"set", "union"}  # how often an entry is there tells as well
        if repeats and len(gold.items) != len(answer.items):
            return False
        if gold.ordered:
            pairs = zip(gold.items, answer.items, strict=True)
            return _all([self.equal(g, a, ask) for g, a in pairs])
        if max(len(gold.items), len(answer.items)) > MAX_ITEMS:
            return False
        rows = [[self.equal(g, a, ask) for a in answer.items] for g in gold.items]
        columns = zip(*rows, strict=True) if rows else [() for _ in answer.items]
        covered = _all(_any(line) for line in [*rows, *columns])
        if not repeats or not covered or _paired(rows):
            return covered
        return None if any(None in row for row in rows) else False


def is_gradable(gold: Value, ask: Ask) -> bool | None:
    """Whether all of a gold can be read; None while an answer of `ask` is missing."""
    if isinstance(gold, Equation):
        return is_gradable(gold.right, ask) if gold.right and gold.whole else ask((gold.tex,))
    if isinstance(gold, Expression):
        return ask((gold.tex,))
    if isinstance(gold, Container | Steps):
        return _all([is_gradable(item, ask) for item in gold.items])
    return True


def to_tex(value: Value) -> str:
    """Writes a value for the worker."""
    if isinstance(value, Expression | Equation):
        return value.tex
    if isinstance(value, Text):
        return value.text
    if isinstance(value, Number):
        top, bottom = value.value.numerator, value.value.denominator
        number = f"{top}" if bottom == 1 else f"\\frac{{{top}}}{{{bottom}}}"
        number += "\\pi" if value.pi else ""
        return number + {"%": "\\%", "°": "°"}.get(value.unit, "")
    if isinstance(value, Steps):
        return to_tex(value.items[-1])
    items = [to_tex(item) for item in value.items]
    if "×" in value.kind:
        columns = int(value.kind.partition("×")[2])
        rows = ["&".join(items[i : i + columns]) for i in range(0, len(items), columns)]
        return "\\begin{pmatrix}" + "\\\\".join(rows) + "\\end{pmatrix}"
    if value.kind == "union":
        return "\\cup ".join(items)
    if value.kind in ("set", "list", "equations"):
        return f"\\{{{','.join(items)}\\}}" if items else "\\emptyset"
    return value.kind[0] + ",".join(items) + value.kind[-1]


def _all(values) -> bool | None:
    values = list(values)
    return False if False in values else None if None in values else True


def _any(values) -> bool | None:
    values = list(values)
    return True if True in values else None if None in values else False


def _paired(rows: list[list[bool | None]]) -> bool:
    """True if each row has a True in a column of its own; equal rows make the choice free."""
    free = list(range(len(rows)))
    for row in rows:
        column = next((column for column in free if row[column]), None)
        if column is None:
            return False
        free.remove(column)
    return True


def _scaled(number: Number, unit: str, by: int, pi: bool = False) -> Number:
    """The number without its unit, if it has this one."""
    if number.unit != unit:
        return number
    value, last_digit = number.value / by, number.last_digit / by
    return replace(number, value=value, last_digit=last_digit, unit="", pi=pi or number.pi)


def _unit(value: Value) -> str:
    return value.unit if isinstance(value, Number | Expression) else ""
