"""Sets of real numbers: unions, intersections and differences of intervals.

Ends are ordered by their size in double precision. If ends are not numbers, the intervals stay as
written.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.verifiers.maths.values import Container, Infinity, Piece, Region, Value, approximate

_INTERVALS = ("()", "[]", "(]", "[)")
_SAME_END = 1e-12


def interval(low: Value, low_closed: bool, high: Value, high_closed: bool) -> Region:
    """The numbers between two ends, of which infinite ones are open.

    Args:
      low, high: ends; infinite values have no end.
      low_closed, high_closed: True: the end belongs to the interval.
    """
    low_closed = low_closed and not isinstance(low, Infinity)
    return Region((Piece(low, low_closed, high, high_closed and not isinstance(high, Infinity)),))


LINE = interval(Infinity(True), False, Infinity(), False)


def as_region(value: Value) -> Region | None:
    """A region, an interval, or a finite set of numbers as a region; None for anything else."""
    if isinstance(value, Region):
        return value
    if is_interval(value):
        low, high = value.items
        return interval(low, value.kind[0] == "[", high, value.kind[1] == "]")
    if isinstance(value, Container) and value.kind == "set":
        return _points(value.items)
    return None


def _points(values: Sequence[Value]) -> Region:
    return union([Region((Piece(value, True, value, True),)) for value in values])


def is_interval(value: Value) -> bool:
    """Whether (a, b) or [a, b) may be an interval."""
    return isinstance(value, Container) and value.kind in _INTERVALS and len(value.items) == 2


def is_point(value: Value) -> bool:
    """Whether (a, b) may be a point: both ends open and finite."""
    return (
        isinstance(value, Container)
        and value.kind == "()"
        and not any(isinstance(item, Infinity) for item in value.items)
    )


def union(regions: Sequence[Region]) -> Region:
    """All of them together, merged where they touch."""
    pieces = [piece for region in regions for piece in region.pieces]
    name = _name(regions)
    ends = [(approximate(piece.low), approximate(piece.high)) for piece in pieces]
    if any(None in pair for pair in ends):
        return Region(tuple(pieces), name)
    ordered = sorted(
        zip(ends, pieces, strict=True), key=lambda pair: (pair[0][0], not pair[1].low_closed)
    )
    found: list[tuple[float, Piece]] = []
    for (low, high), piece in ordered:
        if low > high or (low == high and not (piece.low_closed and piece.high_closed)):
            continue
        if found:
            before_high, before = found[-1]
            touching = _same(before_high, low) and (before.high_closed or piece.low_closed)
            if touching or (low < before_high and not _same(before_high, low)):
                if high > before_high or (_same(high, before_high) and piece.high_closed):
                    before = replace(before, high=piece.high, high_closed=piece.high_closed)
                found[-1] = max(before_high, high), before
                continue
        found.append((high, piece))
    return Region(tuple(piece for _, piece in found), name)


def intersection(first: Region, *others: Region) -> Region | None:
    """The numbers in all regions; None if the ends cannot be compared."""
    for other in others:
        found = []
        for a, b in itertools.product(first.pieces, other.pieces):
            low = _inner(a.low, a.low_closed, b.low, b.low_closed, max)
            high = _inner(a.high, a.high_closed, b.high, b.high_closed, min)
            if low is None or high is None:
                return None
            found.append(Region((Piece(*low, *high),)))
        first = replace(union(found), name=_name([first, other]))
    return first


def complement(region: Region) -> Region | None:
    """The numbers outside; None if the ends cannot be compared."""
    outside = []
    for piece in region.pieces:
        below = interval(Infinity(True), False, piece.low, not piece.low_closed)
        above = interval(piece.high, not piece.high_closed, Infinity(), False)
        outside.append(union([below, above]))
    rest = intersection(LINE, *outside)
    return rest and replace(rest, name=region.name)


def excluded(points: Sequence[Value], name: str = "") -> Region | None:
    """All numbers but these."""
    return complement(replace(_points(points), name=name))


def joined_rays(regions: Sequence[Region]) -> Region | None:
    """The intersection; if it is empty, as of "x < 1, x > 3", the union."""
    common = intersection(*regions)
    return common if common is None or common.pieces else union(regions)


def _inner(one: Value, closed: bool, other: Value, other_closed: bool, choose):
    """The end that is further in, and whether it belongs to the set."""
    ends = approximate(one), approximate(other)
    if None in ends:
        return (one, closed) if one == other and closed == other_closed else None
    if _same(*ends):
        return one, closed and other_closed
    return (one, closed) if choose(ends) == ends[0] else (other, other_closed)


def _same(first: float, second: float) -> bool:
    if first == second:
        return True
    return abs(first - second) <= _SAME_END * max(abs(first), abs(second)) and math.isfinite(
        first - second
    )


def _name(regions: Sequence[Region]) -> str:
    names = {region.name for region in regions if region.name}
    return names.pop() if len(names) == 1 else ""
