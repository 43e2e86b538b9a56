"""Sets of real numbers: unions, intersections and differences of intervals, and what they are of.

Ends are put in order by their size in double precision; ends that are no number leave the pieces as
they were written.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from rlvr_jax.verifiers.maths.values import Container, Infinity, Piece, Region, Value, approximate

_INTERVALS = ("()", "[]", "(]", "[)")
LINE = Region((Piece(Infinity(True), False, Infinity(), False),))
_SAME_END = 1e-12


def as_region(value: Value) -> Region | None:
    """A region, an interval, or a finite set of numbers as a region; None for anything else."""
    if isinstance(value, Region):
        return value
    if not isinstance(value, Container):
        return None
    if is_interval(value):
        low, high = value.items
        closed = value.kind[0] == "[", value.kind[1] == "]"
        piece = Piece(
            low,
            closed[0] and not isinstance(low, Infinity),
            high,
            closed[1] and not isinstance(high, Infinity),
        )
        return Region((piece,))
    if value.kind == "set":
        points = tuple(Piece(item, True, item, True) for item in value.items)
        return union([Region((point,)) for point in points])
    return None


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


def union(regions: Sequence[Region], merged: bool = True) -> Region:
    """All of them together, joined where they touch."""
    pieces = [piece for region in regions for piece in region.pieces]
    name = _name(regions)
    ends = [(approximate(piece.low), approximate(piece.high)) for piece in pieces]
    if not merged or any(None in pair for pair in ends):
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


def intersection(first: Region, second: Region) -> Region | None:
    """What lies in both; None if the ends cannot be compared."""
    found = []
    for one in first.pieces:
        for other in second.pieces:
            low = _inner(one.low, one.low_closed, other.low, other.low_closed, max)
            high = _inner(one.high, one.high_closed, other.high, other.high_closed, min)
            if low is None or high is None:
                return None
            found.append(Region((Piece(*low, *high),)))
    return replace(union(found), name=_name([first, second]))


def complement(region: Region) -> Region | None:
    """What lies outside; None if the ends cannot be compared."""
    rest: Region | None = LINE
    for piece in region.pieces:
        outside = union(
            [
                Region((Piece(Infinity(True), False, piece.low, not piece.low_closed),)),
                Region((Piece(piece.high, not piece.high_closed, Infinity(), False),)),
            ]
        )
        rest = rest and intersection(rest, outside)
    return rest and replace(rest, name=region.name)


def excluded(points: Sequence[Value], name: str = "") -> Region | None:
    """All numbers but these."""
    region = union([Region((Piece(point, True, point, True),)) for point in points])
    rest = complement(region)
    return rest and replace(rest, name=name)


def joined_rays(regions: Sequence[Region]) -> Region | None:
    """Of "x < 1, x > 3" the union, as the rays do not meet; of all else what lies in all."""
    both = regions[0]
    for region in regions[1:]:
        both = both and intersection(both, region)
    if both is None:
        return None
    return both if both.pieces else union(regions)


def _inner(one: Value, closed: bool, other: Value, other_closed: bool, choose):
    """The end that lies further in, and whether it belongs to the set."""
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
