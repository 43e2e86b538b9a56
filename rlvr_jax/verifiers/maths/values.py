"""Values of answers: numbers, words, formulas, chains, equations, sets of numbers, containers.

`parsing` makes them from a text, and `comparison` decides when two are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from rlvr_jax.verifiers.maths.formulas.identity import worked_out
from rlvr_jax.verifiers.maths.formulas.reading import read_formula

# (gold, answer) -> equal? and (gold,) -> readable? None: not known yet.
Query = Callable[[tuple[str, ...]], bool | None]


@dataclass(frozen=True)
class Number:
    """value · π^pi, as it was written: with a unit, as a decimal, in a base.

    Fields:
      last_digit: value of the last written digit of a decimal, 0.01 for 2.50; 0 for other numbers.
      based: digits and base of a number that is written in another base.
      modulus: 12 in 7 (mod 12); 0 without one.
      tex: the number with its unit, as written.
    """

    value: Fraction
    pi: bool = False
    unit: str = ""
    last_digit: Fraction = Fraction(0)
    based: tuple[str, int] | None = None
    modulus: int = 0
    tex: str = field(default="", compare=False)


@dataclass(frozen=True)
class Infinity:
    """∞, or -∞."""

    negative: bool = False


@dataclass(frozen=True)
class Text:
    """Words, an option letter, a time of day, or a text that is compared letter by letter."""

    text: str


@dataclass(frozen=True)
class Unread:
    """A text that cannot be compared: ungraded as a gold, incorrect as an answer."""

    text: str


@dataclass(frozen=True)
class Expression:
    """A formula, and separately the unit at its end."""

    tex: str
    unit: str = ""


@dataclass(frozen=True)
class Ratio:
    """a : b : …, equal up to a factor."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Chain:
    """The sides of 2 + 3 = 5 ≈ 5.0; a value equal to the chain must be equal to each side.

    Fields:
      items: the exact sides.
      rounded: the decimal after ≈, which is true to its digits.
    """

    items: tuple[Value, ...]
    rounded: Number | None = None


@dataclass(frozen=True)
class Equation:
    """left = right, where left is the name of the value.

    Fields:
      tex: first and second side of the equation, for a comparison as a whole.
      left: the name of the value.
      right: the value.
      whole: the equation means only its value, as in x = 5, unlike x² + y² = 4.
      solved: it assigns a number to a name.
    """

    tex: tuple[str, str]
    left: str
    right: Value
    whole: bool
    solved: bool


@dataclass(frozen=True)
class Relation:
    """left < right, left ≤ right, left ≠ right, or left = right without a value.

    Fields:
      sign: "<", "\\le", "\\ne" or "=".
    """

    left: str
    sign: str
    right: str


@dataclass(frozen=True)
class Piece:
    """The real numbers between two ends, which may belong to it."""

    low: Value
    low_closed: bool
    high: Value
    high_closed: bool


@dataclass(frozen=True)
class Region:
    """A set of real numbers: its intervals in order, without contact.

    Fields:
      name: of the variable in x < 3; "" where none is named.
    """

    pieces: tuple[Piece, ...]
    name: str = ""

    @property
    def ends(self) -> list[Value]:
        return [end for piece in self.pieces for end in (piece.low, piece.high)]


@dataclass(frozen=True)
class Container:
    """Entries, ordered or not.

    Fields:
      kind: the two brackets of a tuple or an interval; "set"; "list"; "system" (equations with
        different names, or relations). "choice" means one of such entries; rows×columns a matrix.
      mixed: for the list "2 and 1/2", the mixed number that it may also be.
    """

    kind: str
    items: tuple[Value, ...]
    mixed: Number | None = None

    @property
    def ordered(self) -> bool:
        return self.kind not in ("set", "list", "system", "choice")

    def assigned(self, order: Sequence[str] | None = None) -> tuple[Value, ...]:
        """The values of a system x = 2, y = 3 by name; () if a name is missing or has two values.

        Args:
          order: all names of the system; None: alphabetical order.
        """
        found = {e.left: e.right for e in self.items if isinstance(e, Equation) and e.solved}
        if len(found) < len(self.items) or (order is not None and sorted(found) != sorted(order)):
            return ()
        names = sorted(found, key=lambda name: name.lstrip("\\")) if order is None else order
        return tuple(found[name] for name in names)


@dataclass(frozen=True)
class Qualified:
    """A formula with the domain of some of its letters, as in "kπ, k ∈ ℤ".

    Fields:
      value: the formula, or several.
      names: the letters.
      domains: the possible domains, by the names of `qualifiers`.
      inside: the letters are an argument or an index of a definition, as in f(x) = 2x.
    """

    value: Value
    names: tuple[str, ...]
    domains: frozenset[str]
    inside: bool


Value = (
    Number
    | Infinity
    | Text
    | Unread
    | Expression
    | Ratio
    | Chain
    | Equation
    | Relation
    | Region
    | Container
    | Qualified
)

Parse = Callable[[str], Value]


def to_tex(value: Value) -> str | None:
    """Writes a value as a formula, without its unit; None if it is not one."""
    if isinstance(value, Expression):
        return value.tex
    if isinstance(value, Infinity):
        return "-\\infty" if value.negative else "\\infty"
    if isinstance(value, Number):
        top, bottom = value.value.numerator, value.value.denominator
        if max(abs(top), bottom).bit_length() > 10**4:  # Python prints no more
            return None
        number = f"{top}" if bottom == 1 else f"\\frac{{{top}}}{{{bottom}}}"
        return f"{number}\\pi " if value.pi else number
    return None


def approximate(value: Value) -> float | None:
    """A value in double precision; None if it is not known to be real."""
    if isinstance(value, Infinity):
        return -math.inf if value.negative else math.inf
    if isinstance(value, Number):
        try:
            return float(value.value) * (math.pi if value.pi else 1)
        except OverflowError:
            return None
    tex = to_tex(value)
    node = None if tex is None else read_formula(tex)
    found = None if node is None else worked_out(node)
    if found is None:
        return None
    found = complex(found) if not isinstance(found, Fraction) else complex(float(found))
    return (
        found.real if abs(found.imag) <= 1e-12 * abs(found) and math.isfinite(found.real) else None
    )


def all_of(values: Iterable[bool | None]) -> bool | None:
    """Whether all are true, where None is not known yet."""
    values = list(values)
    return False if False in values else None if None in values else True


def any_of(values: Iterable[bool | None]) -> bool | None:
    """Whether one is true, where None is not known yet."""
    values = list(values)
    return True if True in values else None if None in values else False
