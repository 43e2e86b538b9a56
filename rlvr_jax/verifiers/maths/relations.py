"""Equations, inequalities and ratios compared as wholes: a common factor has no effect."""

import math
from collections.abc import Iterator
from fractions import Fraction

from rlvr_jax.verifiers.maths.formulas import identity
from rlvr_jax.verifiers.maths.formulas.elementary import TooLarge
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import Node, free_symbols, parts, unordered
from rlvr_jax.verifiers.maths.regions import as_region
from rlvr_jax.verifiers.maths.values import (
    Chain,
    Equation,
    Expression,
    Infinity,
    Number,
    Query,
    Ratio,
    Region,
    Relation,
    Value,
    all_of,
    approximate,
    to_tex,
)

_BESIDE = Fraction(1, 10**6)  # of an end, relative to its size
_ROUNDING = 1e-9


def equal_ratios(gold: Value, answer: Value, query: Query) -> bool | None:
    """Whether two ratios a : b : … have equal quotients; a number is the ratio to 1."""
    pair = []
    for value in (gold, answer):
        items = value.items if isinstance(value, Ratio) else (value, Number(Fraction(1)))
        texts = [to_tex(item) for item in items]
        if None in texts or any(getattr(item, "unit", "") for item in items):
            return False
        pair.append(texts)
    if len(pair[0]) != len(pair[1]):
        return False
    verdicts = []
    for place in range(1, len(pair[0])):
        crossed = tuple(f"({one[0]})({other[place]})" for one, other in (pair, pair[::-1]))
        nodes = [read_formula(text) for text in crossed]
        if None in nodes:
            return False
        verdict = identity.same(*nodes)
        verdicts.append(query(crossed) if verdict is None else verdict)
    nothing = [identity.worked_out(read_formula(text)) == 0 for text in (*pair[0], *pair[1])]
    return False if any(nothing) else all_of(verdicts)


def equal_relations(gold: Relation | Equation | Region, answer: Value, query: Query) -> bool | None:
    """Whether two relations are equal: the differences of their sides are proportional."""
    region = as_region(answer) if isinstance(gold, Relation) else None
    if region is not None and (found := _is_solution(gold, region)) is not None:
        return found
    solved = isinstance(gold, Region) and not any(map(has_symbols, gold.ends))
    if solved and isinstance(answer, Relation):
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
    below = [p.items[1] for node in nodes for p in parts(node) if p.kind == "quotient"]
    if verdict is False and sign == "=" and any(map(free_symbols, below)):
        return query((*texts, "/"))
    return query((*texts, "<" if sign in ("<", "\\le") else "=")) if verdict is None else verdict


def equal_statements(gold: Value, answer: Value) -> bool:
    """Whether two statements about numbers have the same sides, in either direction.

    The order of terms and factors has no effect. The sides are compared and not the values, because
    2 + 2 = 4 and 3 + 3 = 6 are both true.
    """
    sides = [
        [_as_written(item) for item in (value.items if isinstance(value, Chain) else (value,))]
        for value in (gold, answer)
    ]
    return sides[0] in (sides[1], sides[1][::-1])


def _as_written(value: Value) -> object:
    tex = value.tex if isinstance(value, Number | Expression) else None
    node = read_formula(tex) if tex else None
    return value if node is None else unordered(node)


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


def has_symbols(value: Value) -> bool:
    """Whether a value is a formula with free letters."""
    node = read_formula(value.tex) if isinstance(value, Expression) else None
    return node is not None and bool(free_symbols(node))


def _is_solution(relation: Relation, region: Region) -> bool | None:
    """Whether a region solves an inequality of one variable; None if that cannot be tried.

    The region is tested, not solved: the inequality must hold inside every interval and fail
    outside. A few hundred places are tested: next to the ends, at the ends, between them, at whole
    numbers and their halves, and far out.
    """
    left, right = read_formula(relation.left), read_formula(relation.right)
    if left is None or right is None:
        return None
    if any(part.kind == "word" for side in (left, right) for part in parts(side)):
        return None
    symbols = free_symbols(left) | free_symbols(right)
    ends = [(approximate(piece.low), approximate(piece.high)) for piece in region.pieces]
    if len(symbols) != 1 or any(None in pair for pair in ends):
        return None
    (name,) = symbols
    if region.name and region.name != name:
        return False
    if relation.sign == "=":
        return None
    finite = sorted({end for pair in ends for end in pair if math.isfinite(end)})
    for place in _places(finite):
        at_end = any(_is_at(place, end) for end in finite)
        holds = _holds(left, right, relation.sign, name, Fraction(place), at_end)
        if holds is not None and holds != _inside(place, ends, region):
            return False
    return True


def _places(ends: list[float]) -> Iterator[float]:
    for number in range(-40, 41):
        yield number / 2
    for far in (60.3, 10.0**3, 10.0**5):
        yield from (far, -far)
    for number, end in enumerate(ends):
        step = float(_BESIDE) * max(1.0, abs(end))
        yield from (end, end - step, end + step, end - 1 / 7, end + 1 / 7)
        if number:
            yield (end + ends[number - 1]) / 2


def _holds(
    left: Node, right: Node, sign: str, name: str, place: Fraction, at_end: bool
) -> bool | None:
    """Whether the inequality holds at a place; None if rounding errors hide it."""
    evaluation = identity.in_floats({name: place}, frozenset())
    try:
        low, high = evaluation.value(left), evaluation.value(right)
    except TooLarge:
        return None
    except ArithmeticError:
        return False
    if evaluation.complex:
        return False
    gap = evaluation.real(evaluation.inexact(high)) - evaluation.real(evaluation.inexact(low))
    near = abs(gap) <= _ROUNDING * 2.0 ** min(max(evaluation.largest, 0), 900)
    if near and not (at_end or (isinstance(low, Fraction) and isinstance(high, Fraction))):
        return None
    if near and (at_end or gap == 0):
        return sign == "\\le"
    return gap != 0 if sign == "\\ne" else gap > 0


def _is_at(place: float, end: float) -> bool:
    return abs(place - end) <= _ROUNDING * max(1, abs(end))


def _inside(place: float, ends: list[tuple[float, float]], region: Region) -> bool:
    for (low, high), piece in zip(ends, region.pieces, strict=True):
        near = [math.isfinite(end) and _is_at(place, end) for end in (low, high)]
        if near[0] or near[1]:
            if (near[0] and piece.low_closed) or (near[1] and piece.high_closed):
                return True
        elif low < place < high:
            return True
    return False
