"""Is a set of real numbers what solves an inequality of one variable? Tried, not solved.

The inequality has to hold inside of every piece and to fail outside, as far as a few hundred places
tell: next to the ends on both sides, at the ends themselves, between them, at whole numbers and
their halves, and far out.
"""

import math
from collections.abc import Iterator
from fractions import Fraction

from rlvr_jax.verifiers.maths.formulas.elementary import TooLarge
from rlvr_jax.verifiers.maths.formulas.identity import in_floats
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import Node, free_symbols
from rlvr_jax.verifiers.maths.values import Region, Relation, approximate

_BESIDE = Fraction(1, 10**6)  # of an end, relative to its size
_ROUNDING = 1e-9


def is_solution(relation: Relation, region: Region) -> bool | None:
    """Whether the region holds all solutions and nothing else; None if that cannot be tried."""
    left, right = read_formula(relation.left), read_formula(relation.right)
    if left is None or right is None:
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
    """Whether the inequality holds at a place; None where rounding hides it."""
    evaluation = in_floats({name: place}, frozenset())
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
