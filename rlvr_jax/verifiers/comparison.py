"""When two values are equal: decided exactly, by a worker only where digits have to confirm it.

Equality has three values here, as a worker's answer may still be missing. A single value and a
container of values are never equal, also where the container has one entry. Of an equation that
names a value ("x = 5") the value counts, where the other side is no equation.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from rlvr_jax.verifiers import calculus, identity
from rlvr_jax.verifiers.formula import read_formula
from rlvr_jax.verifiers.inequalities import is_solution
from rlvr_jax.verifiers.regions import as_region
from rlvr_jax.verifiers.trees import free_symbols, parts
from rlvr_jax.verifiers.units import factor
from rlvr_jax.verifiers.values import (
    Ask,
    Chain,
    Container,
    Equation,
    Expression,
    Infinity,
    Number,
    Piece,
    Ratio,
    Region,
    Relation,
    Text,
    Unread,
    Value,
    approximate,
    to_tex,
)

__all__ = ["Rules", "is_gradable"]

MAX_ITEMS = 64  # of an unordered container, where every pair is compared
_TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True)
class Rules:
    """How answers are read and compared.

    Fields:
      choice: letters are options.
      percent_is_number: 50 % equals 50 as well.
      tolerance: |answer - gold| / |gold| where the gold is a decimal; None is 10^-6, but at most
        half of the last digit that the gold has.
    """

    choice: bool = False
    percent_is_number: bool = False
    tolerance: Fraction | None = None

    def equal(self, gold: Value, answer: Value, ask: Ask) -> bool | None:
        """Compares; None while an answer of `ask` is missing."""
        if isinstance(gold, Unread) or isinstance(answer, Unread):
            return False
        if gold == answer:
            return True
        if isinstance(gold, Equation) and isinstance(answer, Equation):
            return self._equal_equations(gold, answer, ask)
        if isinstance(gold, Relation | Equation) and isinstance(answer, Relation | Equation | Region):
            return self._equal_relations(gold, answer, ask)
        if isinstance(gold, Region) and isinstance(answer, Relation):
            return self._equal_relations(gold, answer, ask)
        if isinstance(gold, Equation):
            return self.equal(gold.right, answer, ask) if gold.whole else False
        if isinstance(answer, Equation):
            return self.equal(gold, answer.right, ask)
        if isinstance(gold, Text) or isinstance(answer, Text):
            return _folded(gold) == _folded(answer) != ""
        if isinstance(gold, Chain):
            return _all([self.equal(item, answer, ask) for item in gold.items])
        if isinstance(answer, Chain):
            return self._equal_chain(gold, answer, ask)
        if isinstance(gold, Number) and isinstance(answer, Number):
            return self._equal_numbers(gold, answer)
        if isinstance(gold, Ratio) or isinstance(answer, Ratio):
            return self._equal_ratios(gold, answer, ask)
        if isinstance(gold, Container | Region) and isinstance(answer, Container | Region):
            return self._equal_containers(gold, answer, ask)
        return self._equal_formulas(gold, answer, ask)

    # -- single values

    def _equal_numbers(self, gold: Number, answer: Number) -> bool:
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

    def _near(self, gold: Number) -> Fraction:
        """How far an answer may lie from a decimal."""
        if not gold.last_digit:
            return Fraction(0)
        if self.tolerance is None:
            return min(_TOLERANCE * abs(gold.value), gold.last_digit / 2)
        return self.tolerance * abs(gold.value)

    def _close(self, gold: Number, answer: Number) -> bool:
        near = self._near(gold)
        if gold.pi == answer.pi:
            return abs(gold.value - answer.value) <= near
        # π is irrational: an exact gold can only agree at 0. Fractions, as floats overflow.
        first, second = (n.value * (Fraction(math.pi) if n.pi else 1) for n in (gold, answer))
        return first == second == 0 or (bool(near) and abs(first - second) <= near)

    def _equal_formulas(self, gold: Value, answer: Value, ask: Ask) -> bool | None:
        units = {_unit(gold), _unit(answer)}
        if "%" in units and len(units) == 2:
            parts_of_one = [_as_part(value) for value in (gold, answer)]
            if "%" in map(_unit, parts_of_one):
                return False
            return self._equal_formulas(*parts_of_one, ask)
        if units == {"°", ""}:
            turned = [_as_part(value) for value in (gold, answer)]
            if (verdict := self._equal_formulas(*turned, ask)) is not False:
                return verdict
        if factor(_unit(gold), _unit(answer)) != 1:
            return False
        texts = [to_tex(gold), to_tex(answer)]
        nodes = [None if text is None else read_formula(text) for text in texts]
        if None in nodes:
            return False
        if isinstance(gold, Number) and (near := self._near(gold)):
            return ask((*texts, str(near))) if not free_symbols(nodes[1]) else False
        if _folded(gold) == _folded(answer) != "":
            return True
        verdict = identity.same(*nodes)
        if verdict is None:
            verdict = ask(tuple(texts))
        # Of 5 m the m may be a factor.
        written = [v.tex if isinstance(v, Number) and v.unit else None for v in (gold, answer)]
        if verdict is False and any(written) and any(map(_has_symbols, (gold, answer))):
            again = [text or plain for text, plain in zip(written, texts, strict=True)]
            nodes = [read_formula(text) for text in again]
            verdict = None not in nodes and identity.same(*nodes)
            verdict = ask(tuple(again)) if verdict is None else verdict
        return verdict

    def _equal_chain(self, gold: Value, answer: Chain, ask: Ask) -> bool | None:
        """Each side has to be right, or the rounded one is the decimal that is the gold."""
        decimal = answer.rounded
        if decimal and isinstance(gold, Number) and gold.last_digit == decimal.last_digit:
            if gold.last_digit and self._equal_numbers(replace(gold, last_digit=Fraction(0)), decimal):
                return True
        return _all([self.equal(gold, item, ask) for item in answer.items])

    def _equal_ratios(self, gold: Value, answer: Value, ask: Ask) -> bool | None:
        pair = []
        for value in (gold, answer):
            items = value.items if isinstance(value, Ratio) else (value, Number(Fraction(1)))
            texts = [to_tex(item) for item in items]
            if None in texts or any(_unit(item) for item in items):
                return False
            pair.append(texts)
        if len(pair[0]) != len(pair[1]):
            return False
        verdicts = []
        for place in range(1, len(pair[0])):
            crossed = tuple(
                f"({one[0]})({other[place]})" for one, other in (pair, pair[::-1])
            )
            nodes = [read_formula(text) for text in crossed]
            if None in nodes:
                return False
            verdict = identity.same(*nodes)
            verdicts.append(ask(crossed) if verdict is None else verdict)
        nothing = [identity.worked_out(read_formula(text)) == 0 for text in (*pair[0], *pair[1])]
        return False if any(nothing) else _all(verdicts)

    # -- equations and inequalities

    def _equal_equations(self, gold: Equation, answer: Equation, ask: Ask) -> bool | None:
        if gold.left == answer.left and (gold.left or (gold.whole and answer.whole)):
            verdict = self.equal(gold.right, answer.right, ask)
            if verdict is not False:
                return verdict
        if gold.solved or (gold.whole and not gold.left):
            return False
        return self._equal_relations(gold, answer, ask)

    def _equal_relations(
        self, gold: Relation | Equation | Region, answer: Value, ask: Ask
    ) -> bool | None:
        """As wholes: the differences of both sides are proportional."""
        if isinstance(gold, Relation) and isinstance(answer, Region):
            if (found := is_solution(gold, answer)) is not None:
                return found
        if isinstance(gold, Region) and isinstance(answer, Relation) and not _symbolic(gold):
            return False  # a range is given in a solved form
        pair = [_relation(value) for value in (gold, answer)]
        if None in pair:
            return False
        (left, sign, right), (left2, sign2, right2) = pair
        if sign != sign2:
            return False
        texts = (f"{left}-({right})", f"{left2}-({right2})")
        nodes = [read_formula(text) for text in texts]
        if None in nodes:
            return False
        verdict = identity.proportional(*nodes, ordered=sign in ("<", "\\le"))
        return ask((*texts, "<" if sign in ("<", "\\le") else "=")) if verdict is None else verdict

    # -- containers

    def _equal_containers(
        self, gold: Container | Region, answer: Container | Region, ask: Ask
    ) -> bool | None:
        if isinstance(gold, Region) or isinstance(answer, Region):
            return self._equal_regions(gold, answer, ask)
        kinds = {gold.kind, answer.kind}
        if gold.kind == "system" and answer.kind in ("()", "list"):
            return self._equal_system(gold, answer, ask)
        if len(kinds) > 1 and kinds != {"set", "list"}:
            return False
        if gold.ordered:
            return self._in_order(gold.items, answer.items, ask)
        return self._in_any_order(gold, answer, ask)

    def _in_order(self, gold: tuple[Value, ...], answer: tuple[Value, ...], ask) -> bool | None:
        if len(gold) != len(answer):
            return False
        return _all([self.equal(g, a, ask) for g, a in zip(gold, answer, strict=True)])

    def _in_any_order(self, gold: Container, answer: Container, ask: Ask) -> bool | None:
        repeats = "set" not in (gold.kind, answer.kind)  # how often an entry is there tells as well
        if repeats and len(gold.items) != len(answer.items):
            return False
        if max(len(gold.items), len(answer.items)) > MAX_ITEMS:
            return False
        rows = [[self.equal(g, a, ask) for a in answer.items] for g in gold.items]
        columns = zip(*rows, strict=True) if rows else [() for _ in answer.items]
        covered = _all(_any(line) for line in [*rows, *columns])
        if not repeats or not covered or _paired(rows):
            return covered
        return None if any(None in row for row in rows) else False

    def _equal_system(self, gold: Container, answer: Container, ask: Ask) -> bool | None:
        """x = 2, y = 3 as (2, 3), or as the list in its order."""
        solved = all(isinstance(item, Equation) and item.solved for item in gold.items)
        if not solved or any(isinstance(item, Equation) for item in answer.items):
            return False
        items = gold.items
        if answer.kind == "()":
            items = tuple(sorted(items, key=lambda equation: equation.left))
        return self._in_order(tuple(equation.right for equation in items), answer.items, ask)

    def _equal_regions(self, gold: Value, answer: Value, ask: Ask) -> bool | None:
        if any(isinstance(value, Container) and value.kind == "list" for value in (gold, answer)):
            return self._equal_pairs(gold, answer, ask)
        first, second = as_region(gold), as_region(answer)
        if first is None or second is None:
            return False
        if first.name and second.name and first.name != second.name:
            return False
        if first.pairs and second.pairs:
            return self._equal_pairs(gold, answer, ask)
        pieces = first.pieces, second.pieces
        if len(pieces[0]) != len(pieces[1]):
            return False
        same = [self._equal_pieces(g, a, ask) for g, a in zip(*pieces, strict=True)]
        if False in same and not _in_line(first):
            items = [Container("set", tuple(map(_interval, r))) for r in pieces]
            return self._in_any_order(*items, ask)
        return _all(same)

    def _equal_pieces(self, gold: Piece, answer: Piece, ask: Ask) -> bool | None:
        closed = [(piece.low_closed, piece.high_closed) for piece in (gold, answer)]
        if closed[0] != closed[1]:
            return False
        pairs = ((gold.low, answer.low), (gold.high, answer.high))
        return _all([self.equal(g, a, ask) for g, a in pairs])

    def _equal_pairs(self, gold: Value, answer: Value, ask: Ask) -> bool | None:
        """Points (a, b) that may be intervals, in any order."""
        found = []
        for value in (gold, answer):
            if isinstance(value, Region):
                if not value.pairs:
                    return False
                value = Container("list", tuple(map(_interval, value.pieces)))
            if not isinstance(value, Container) or value.kind != "list":
                return False
            found.append(value)
        return self._in_any_order(*found, ask)


def is_gradable(gold: Value, ask: Ask) -> bool | None:
    """Whether all of a gold can be read; None while an answer of `ask` is missing."""
    if isinstance(gold, Unread):
        return False
    if isinstance(gold, Expression):
        node = read_formula(gold.tex)
        if node is None:
            return False
        if any(map(calculus.is_calculus, parts(node))):
            return ask((gold.tex,))
        constant = not free_symbols(node) and all(part.kind != "word" for part in parts(node))
        return not constant or identity.worked_out(node) is not None or ask((gold.tex,))
    if isinstance(gold, Equation):
        sides = [read_formula(side) for side in gold.tex]
        if "" not in gold.tex and None not in sides:
            return True
        return is_gradable(gold.right, ask) if gold.whole else False
    if isinstance(gold, Relation):
        return None not in [read_formula(side) for side in (gold.left, gold.right)]
    if isinstance(gold, Container | Chain | Ratio):
        return _all([is_gradable(item, ask) for item in gold.items])
    if isinstance(gold, Region):
        ends = [end for piece in gold.pieces for end in (piece.low, piece.high)]
        return _all([is_gradable(end, ask) for end in ends])
    return True


def _relation(value: Value) -> tuple[str, str, str] | None:
    """Both sides of an equation or an inequality."""
    if isinstance(value, Relation):
        return value.left, value.sign, value.right
    if isinstance(value, Equation):
        return (value.tex[0], "=", value.tex[1]) if value.tex[0] else None
    if not isinstance(value, Region) or not value.name or len(value.pieces) != 1:
        return None
    (piece,) = value.pieces
    name = value.name
    if isinstance(piece.low, Infinity) and (high := to_tex(piece.high)):
        return name, "\\le" if piece.high_closed else "<", high
    if isinstance(piece.high, Infinity) and (low := to_tex(piece.low)):
        return low, "\\le" if piece.low_closed else "<", name
    return None


def _symbolic(region: Region) -> bool:
    ends = [end for piece in region.pieces for end in (piece.low, piece.high)]
    return any(map(_has_symbols, ends))


def _has_symbols(value: Value) -> bool:
    node = read_formula(value.tex) if isinstance(value, Expression) else None
    return node is not None and bool(free_symbols(node))


def _in_line(region: Region) -> bool:
    """Whether the pieces stand in order, as their ends are known numbers."""
    ends = [end for piece in region.pieces for end in (piece.low, piece.high)]
    return None not in map(approximate, ends)


def _interval(piece: Piece) -> Container:
    kind = ("[" if piece.low_closed else "(") + ("]" if piece.high_closed else ")")
    return Container(kind, (piece.low, piece.high))


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


def _folded(value: Value) -> str:
    """A word of three letters or more, in lower case; "" for anything else."""
    text = value.text if isinstance(value, Text) else getattr(value, "tex", "")
    return text.casefold() if re.fullmatch(r"[A-Za-z]{3,}", text) else ""


def _as_part(value: Value) -> Value:
    """50 % as 50/100 and 90° as 90π/180."""
    by = {"%": "\\frac{1}{100}", "°": "\\frac{\\pi}{180}"}.get(_unit(value))
    tex = to_tex(value)
    return value if by is None or tex is None else Expression(f"({tex}){by}")


def _unit(value: Value) -> str:
    return value.unit if isinstance(value, Number | Expression) else ""
