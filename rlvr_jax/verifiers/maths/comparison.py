"""Equality of two values, decided exactly; a worker only confirms digits.

Equality has three values, because a worker's result may still be missing. A single value and a
container of values are never equal, even if the container has one entry. An equation that names a
value ("x = 5") counts as the value if the other side is not an equation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from rlvr_jax.verifiers.maths.constants import with_same_constants
from rlvr_jax.verifiers.maths.formulas import identity
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import free_symbols
from rlvr_jax.verifiers.maths.qualifiers import plain_pair
from rlvr_jax.verifiers.maths.quantities import NumberRules
from rlvr_jax.verifiers.maths.regions import as_region
from rlvr_jax.verifiers.maths.relations import (
    equal_ratios,
    equal_relations,
    equal_statements,
    has_symbols,
)
from rlvr_jax.verifiers.maths.units import factor
from rlvr_jax.verifiers.maths.values import (
    Chain,
    Container,
    Equation,
    Expression,
    Number,
    Piece,
    Qualified,
    Query,
    Ratio,
    Region,
    Relation,
    Text,
    Unread,
    Value,
    all_of,
    any_of,
    approximate,
    to_tex,
)

_MAX_ITEMS = 64  # of an unordered container, whose entries are compared in pairs
# As written this is the set of the numbers between, where x = 0, y = 1 is a point.
_UNIT_INTERVAL = Number(Fraction(0)), Number(Fraction(1))
_READ_AS_SIGNS = (Text, Expression, Unread)


@dataclass(frozen=True)
class Rules(NumberRules):
    """Rules for reading and comparing answers, with the fields of `NumberRules`.

    Fields:
      choice: letters are options.
    """

    choice: bool = False

    def equal(self, gold: Value, answer: Value, query: Query) -> bool | None:
        """Compares two values; None while a result of `query` is missing."""
        if isinstance(gold, Number) and gold.based and isinstance(answer, _READ_AS_SIGNS):
            text = answer.tex if isinstance(answer, Expression) else answer.text
            # 1A, which is not a number by itself; the digits of the gold have no zeros before them.
            return "".join(text.split()).lower().lstrip("0") == gold.based[0]
        if isinstance(gold, Unread) or isinstance(answer, Unread):
            return False
        if gold == answer:
            return True
        if isinstance(gold, Qualified) or isinstance(answer, Qualified):
            pair = plain_pair(gold, answer)
            return self.equal(*pair, query) if pair else False
        verdict = self._equal(gold, answer, query)
        if verdict is False and isinstance(answer, Expression | Equation):
            pairs = with_same_constants(gold, answer)
            return any_of(self._equal(*pair, query) for pair in pairs)
        return verdict

    def _equal(self, gold: Value, answer: Value, query: Query) -> bool | None:
        if isinstance(gold, Equation) and isinstance(answer, Equation):
            return self._equal_equations(gold, answer, query)
        if isinstance(gold, Relation | Equation) and isinstance(answer, Relation | Equation):
            return equal_relations(gold, answer, query)
        solved = isinstance(gold, Relation) and as_region(answer) is not None
        if solved or (isinstance(gold, Region) and isinstance(answer, Relation)):
            return equal_relations(gold, answer, query)
        if isinstance(gold, Equation):
            if isinstance(answer, Container) and answer.kind == "system" and gold.left[:1] == "(":
                answer = Container("()", answer.assigned(gold.left[1:-1].split(",")))
            return self.equal(gold.right, answer, query) if gold.whole else False
        if isinstance(answer, Equation):
            return self.equal(gold, answer.right, query)
        if isinstance(gold, Text) or isinstance(answer, Text):
            return _folded(gold) == _folded(answer) != ""
        if isinstance(gold, Chain):
            return all_of([self.equal(item, answer, query) for item in gold.items])
        if isinstance(answer, Chain):
            return self._equal_chain(gold, answer, query)
        if isinstance(gold, Number) and isinstance(answer, Number):
            return self.equal_numbers(gold, answer)
        if isinstance(gold, Container) and gold.mixed and isinstance(answer, Number | Expression):
            return self.equal(gold.mixed, answer, query)
        if isinstance(answer, Container) and answer.mixed and isinstance(gold, Number | Expression):
            return self.equal(gold, answer.mixed, query)
        if isinstance(gold, Ratio) or isinstance(answer, Ratio):
            return equal_ratios(gold, answer, query)
        if isinstance(gold, Container | Region) and isinstance(answer, Container | Region):
            return self._equal_containers(gold, answer, query)
        return self._equal_formulas(gold, answer, query)

    def _equal_formulas(self, gold: Value, answer: Value, query: Query) -> bool | None:
        units = {_unit(gold), _unit(answer)}
        if "%" in units and len(units) == 2:
            parts_of_one = [_as_part(value) for value in (gold, answer)]
            if "%" in map(_unit, parts_of_one):
                return False
            return self._equal_formulas(*parts_of_one, query)
        if units == {"°", ""}:
            turned = [_as_part(value) for value in (gold, answer)]
            if (verdict := self._equal_formulas(*turned, query)) is not False:
                return verdict
        if factor(_unit(gold), _unit(answer)) != 1:
            return False
        texts = [to_tex(gold), to_tex(answer)]
        nodes = [None if text is None else read_formula(text) for text in texts]
        if None in nodes:
            return False
        if isinstance(gold, Number) and (near := self.near(gold)):
            return query((*texts, str(near))) if not free_symbols(nodes[1]) else False
        if _folded(gold) == _folded(answer) != "":
            return True
        if all(node.kind == "call" and node.value in ("C", "P") for node in nodes):
            return nodes[0] == nodes[1]  # perhaps points
        verdict = identity.same(*nodes)
        if verdict is None:
            verdict = query(tuple(texts))
        # Of 5 m the m may be a factor.
        written = [v.tex if isinstance(v, Number) and v.unit else None for v in (gold, answer)]
        if verdict is False and any(written) and any(map(has_symbols, (gold, answer))):
            again = [text or plain for text, plain in zip(written, texts, strict=True)]
            nodes = [read_formula(text) for text in again]
            verdict = None not in nodes and identity.same(*nodes)
            verdict = query(tuple(again)) if verdict is None else verdict
        return verdict

    def _equal_chain(self, gold: Value, answer: Chain, query: Query) -> bool | None:
        """Each side has to be correct, or the rounded side is the decimal that is the gold."""
        decimal = answer.rounded
        if decimal and isinstance(gold, Number) and gold.last_digit == decimal.last_digit > 0:
            exact = replace(gold, last_digit=Fraction(0))
            if self.equal_numbers(exact, decimal):
                return True
        return all_of([self.equal(gold, item, query) for item in answer.items])

    def _equal_equations(self, gold: Equation, answer: Equation, query: Query) -> bool | None:
        if gold.left == answer.left == "" and gold.whole and answer.whole:
            return equal_statements(gold.right, answer.right)
        if gold.left == answer.left != "":
            verdict = self.equal(gold.right, answer.right, query)
            if verdict is not False:
                return verdict
        if gold.solved or (gold.whole and not gold.left):
            return False
        return equal_relations(gold, answer, query)

    def _equal_containers(
        self, gold: Container | Region, answer: Container | Region, query: Query
    ) -> bool | None:
        if isinstance(gold, Region) or isinstance(answer, Region):
            return self._equal_regions(gold, answer, query)
        kinds = {gold.kind, answer.kind}
        if gold.kind == "system" and answer.kind in ("()", "list"):
            return self._equal_system(gold, answer, query)
        if answer.kind == "system" and gold.kind == "()" and gold.items != _UNIT_INTERVAL:
            return self._in_order(gold.items, answer.assigned(), query)
        if len(kinds) > 1 and kinds != {"set", "list"}:
            return False
        if gold.ordered:
            return self._in_order(gold.items, answer.items, query)
        return self._in_any_order(gold, answer, query)

    def _in_order(self, gold: tuple[Value, ...], answer: tuple[Value, ...], query) -> bool | None:
        if len(gold) != len(answer):
            return False
        return all_of([self.equal(g, a, query) for g, a in zip(gold, answer, strict=True)])

    def _in_any_order(self, gold: Container, answer: Container, query: Query) -> bool | None:
        repeats = "set" not in (gold.kind, answer.kind)  # the number of equal entries also counts
        if repeats and len(gold.items) != len(answer.items):
            return False
        if max(len(gold.items), len(answer.items)) > _MAX_ITEMS:
            return False
        rows = [[self.equal(g, a, query) for a in answer.items] for g in gold.items]
        columns = zip(*rows, strict=True) if rows else [() for _ in answer.items]
        covered = all_of(any_of(line) for line in [*rows, *columns])
        if not repeats or not covered or _paired(rows):
            return covered
        return None if any(None in row for row in rows) else False

    def _equal_system(self, gold: Container, answer: Container, query: Query) -> bool | None:
        """x = 2, y = 3 as (2, 3), or as the list in its order."""
        by_name = gold.assigned()
        if not by_name or any(isinstance(item, Equation) for item in answer.items):
            return False
        in_order = tuple(equation.right for equation in gold.items)
        return self._in_order(by_name if answer.kind == "()" else in_order, answer.items, query)

    def _equal_regions(self, gold: Value, answer: Value, query: Query) -> bool | None:
        if any(isinstance(value, Container) and value.kind == "list" for value in (gold, answer)):
            # Points (a, b) that may be intervals.
            lists = (
                value
                if isinstance(value, Container)
                else Container("list", tuple(map(_interval, value.pieces)))
                for value in (gold, answer)
            )
            return self._in_any_order(*lists, query)
        first, second = as_region(gold), as_region(answer)
        if first is None or second is None:
            return False
        if first.name and second.name and first.name != second.name:
            return False
        pieces = first.pieces, second.pieces
        if len(pieces[0]) != len(pieces[1]):
            return False
        same = [self._equal_pieces(g, a, query) for g, a in zip(*pieces, strict=True)]
        if False in same and None in map(approximate, first.ends):  # perhaps in another order
            items = [Container("set", tuple(map(_interval, r))) for r in pieces]
            return self._in_any_order(*items, query)
        return all_of(same)

    def _equal_pieces(self, gold: Piece, answer: Piece, query: Query) -> bool | None:
        closed = [(piece.low_closed, piece.high_closed) for piece in (gold, answer)]
        if closed[0] != closed[1]:
            return False
        pairs = ((gold.low, answer.low), (gold.high, answer.high))
        return all_of([self.equal(g, a, query) for g, a in pairs])


def _paired(rows: Sequence[Sequence[bool | None]]) -> bool:
    """Whether each row can have a separate column with True; equal rows make the choice free."""
    free = list(range(len(rows)))
    for row in rows:
        column = next((column for column in free if row[column]), None)
        if column is None:
            return False
        free.remove(column)
    return True


def _interval(piece: Piece) -> Container:
    kind = ("[" if piece.low_closed else "(") + ("]" if piece.high_closed else ")")
    return Container(kind, (piece.low, piece.high))


def _folded(value: Value) -> str:
    """A word of three letters or more, in lower case; "" for any other value."""
    text = value.text if isinstance(value, Text) else getattr(value, "tex", "")
    return text.casefold() if re.fullmatch(r"[A-Za-z]{3,}", text) else ""


def _as_part(value: Value) -> Value:
    """50 % as 50/100 and 90° as 90π/180."""
    by = {"%": "\\frac{1}{100}", "°": "\\frac{\\pi}{180}"}.get(_unit(value))
    tex = to_tex(value)
    return value if by is None or tex is None else Expression(f"({tex}){by}")


def _unit(value: Value) -> str:
    return value.unit if isinstance(value, Number | Expression) else ""
