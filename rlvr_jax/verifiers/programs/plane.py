"""Points, lines and circles of the plane, and their constructions, in floats."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# Relative to the lengths that meet: far above float error, far below differences in problems.
_TOUCHING = 1e-9
_SAME_X = 9  # digits after which two abscissas are equal


class Degenerate(ValueError):
    """A construction has no result, or arguments are of another kind."""


class Point(NamedTuple):
    """A point of the plane."""

    x: float
    y: float


class Line(NamedTuple):
    """A line through two different points."""

    p: Point
    q: Point


class Circle(NamedTuple):
    """A circle by its centre and radius."""

    centre: Point
    radius: float


def _point(x: float, y: float) -> Point:
    return Point(x, y)


def _line(p: Point, q: Point) -> Line:
    if math.dist(p, q) <= _TOUCHING * (1 + math.hypot(*p)):
        raise Degenerate("line: points must differ")
    return Line(p, q)


def _circle(centre: Point, radius: float) -> Circle:
    if not radius > 0:
        raise Degenerate("circle: radius must be positive")
    return Circle(centre, radius)


def _midpoint(p: Point, q: Point) -> Point:
    return Point((p.x + q.x) / 2, (p.y + q.y) / 2)


def _foot(p: Point, line: Line) -> Point:
    (ax, ay), (bx, by) = line
    dx, dy = bx - ax, by - ay
    t = ((p.x - ax) * dx + (p.y - ay) * dy) / (dx * dx + dy * dy)
    return Point(ax + t * dx, ay + t * dy)


def _reflect(p: Point, line: Line) -> Point:
    foot = _foot(p, line)
    return Point(2 * foot.x - p.x, 2 * foot.y - p.y)


def _distance(p: Point, other: Point | Line) -> float:
    return math.dist(p, _foot(p, other) if isinstance(other, Line) else other)


def _angle(p: Point, q: Point, r: Point) -> float:
    ux, uy, vx, vy = p.x - q.x, p.y - q.y, r.x - q.x, r.y - q.y
    if not (math.hypot(ux, uy) and math.hypot(vx, vy)):
        raise Degenerate("angle: points must differ from the vertex")
    return math.degrees(math.atan2(abs(ux * vy - uy * vx), ux * vx + uy * vy))


def _area(*points: Point) -> float:
    following = [*points[1:], points[0]]
    twice = sum(p.x * q.y - q.x * p.y for p, q in zip(points, following, strict=True))
    return abs(twice) / 2


def _intersect(u: Line | Circle, v: Line | Circle, number: float | None = None) -> Point:
    found = sorted(_meeting(u, v), key=lambda p: (round(p.x, _SAME_X), p.y))
    if number is None:
        if len(found) != 1:
            raise Degenerate(f"intersect: curves must meet once, got {len(found)} points")
        return found[0]
    if number not in range(1, len(found) + 1):
        raise Degenerate(f"intersect: number must be in 1..{len(found)}, got {number}")
    return found[int(number) - 1]


def _meeting(u: Line | Circle, v: Line | Circle) -> list[Point]:
    if isinstance(u, Line) and isinstance(v, Line):
        return [_crossing(u, v)]
    if isinstance(u, Circle) and isinstance(v, Circle):
        return _circles(u, v)
    return _secant(u, v) if isinstance(u, Line) else _secant(v, u)


def _crossing(u: Line, v: Line) -> Point:
    ux, uy = u.q.x - u.p.x, u.q.y - u.p.y
    vx, vy = v.q.x - v.p.x, v.q.y - v.p.y
    cross = ux * vy - uy * vx
    if abs(cross) <= _TOUCHING * math.hypot(ux, uy) * math.hypot(vx, vy):
        raise Degenerate("intersect: lines must not be parallel")
    t = ((v.p.x - u.p.x) * vy - (v.p.y - u.p.y) * vx) / cross
    return Point(u.p.x + t * ux, u.p.y + t * uy)


def _secant(line: Line, circle: Circle) -> list[Point]:
    foot = _foot(circle.centre, line)
    length = math.dist(*line)
    along = Point((line.q.x - line.p.x) / length, (line.q.y - line.p.y) / length)
    return _apart(foot, along, math.dist(foot, circle.centre), circle.radius)


def _circles(u: Circle, v: Circle) -> list[Point]:
    d = math.dist(u.centre, v.centre)
    if d <= _TOUCHING * (u.radius + v.radius):
        raise Degenerate("intersect: circles must not have one centre")
    ex, ey = (v.centre.x - u.centre.x) / d, (v.centre.y - u.centre.y) / d
    a = (d * d + u.radius**2 - v.radius**2) / (2 * d)  # from u's centre to the common chord
    middle = Point(u.centre.x + a * ex, u.centre.y + a * ey)
    return _apart(middle, Point(-ey, ex), abs(a), u.radius)


def _apart(middle: Point, along: Point, distance: float, radius: float) -> list[Point]:
    """The ends of the chord of a circle at `distance` from its centre."""
    if abs(distance - radius) <= _TOUCHING * radius:
        return [middle]
    if distance > radius:
        return []
    half = math.sqrt((radius - distance) * (radius + distance))
    return [Point(middle.x + s * along.x, middle.y + s * along.y) for s in (-half, half)]


def _checked(
    function: Callable[..., Any], *kinds: type | tuple[type, ...], optional: int = 0, more: int = 0
) -> Callable[[Sequence[Any]], Any]:
    """The function of a sequence of arguments, which must be of these kinds."""

    def call(arguments: Sequence[Any]) -> Any:
        least = len(kinds) - optional
        if not least <= len(arguments) <= len(kinds) + more:
            raise Degenerate(f"{function.__name__[1:]}: {least} arguments required")
        wanted = [*kinds, *[kinds[-1]] * more]
        for argument, kind in zip(arguments, wanted, strict=False):
            if not isinstance(argument, kind):
                raise Degenerate(f"{function.__name__[1:]}: got {type(argument).__name__}")
        return function(*arguments)

    return call


_CURVE = (Line, Circle)
_MOST_CORNERS = 100
CONSTRUCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "point": _checked(_point, float, float),
    "line": _checked(_line, Point, Point),
    "circle": _checked(_circle, Point, float),
    "midpoint": _checked(_midpoint, Point, Point),
    "foot": _checked(_foot, Point, Line),
    "reflect": _checked(_reflect, Point, Line),
    "intersect": _checked(_intersect, _CURVE, _CURVE, float, optional=1),
    "distance": _checked(_distance, Point, (Point, Line)),
    "angle": _checked(_angle, Point, Point, Point),
    "area": _checked(_area, Point, Point, Point, more=_MOST_CORNERS),
}
