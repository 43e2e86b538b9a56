"""Equality of two formulas, decided at points: exactly for rational values, else by digits.

Points follow from the formulas, so a response cannot know them. At some points all names are
positive, and for each name there is a point where only it is negative. Formulas are equal if they
agree at all points. A point does not count if a root or a logarithm of the gold leaves the real
numbers there: y equals (√y)². The formulas differ if only the answer leaves the real numbers, or if
absolute values (ln |x|) make a claim about such points, unless i is in the text.

In this process doubles refute, and rational numbers confirm. If formulas agree in double precision,
the result is None, and a worker with more digits decides (`algebra`).
"""

import cmath
import hashlib
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, ClassVar

from rlvr_jax.verifiers.maths.formulas.elementary import TooLarge, Undefined, functions
from rlvr_jax.verifiers.maths.formulas.evaluation import Evaluation
from rlvr_jax.verifiers.maths.formulas.trees import Node, free_symbols, parts

_BITS = 2**15
_STEPS = 600
# A difference of doubles that is more than rounding, relative to the largest intermediate number.
_CLEAR = 1e-9

# (value, value) at a point, with their evaluations -> equal? None: unknown.
_Judge = Callable[[Any, Any, Evaluation, Evaluation], bool | None]
_Evaluate = Callable[[dict[str, Fraction], frozenset[str]], Evaluation]


class _Floats:
    """The arithmetic of this process: complex numbers of double precision."""

    noise = -26  # half of the bits
    constants: ClassVar[Mapping[str, complex]] = {"pi": cmath.pi, "e": cmath.e, "i": 1j}
    functions = functions(cmath)
    power = staticmethod(pow)
    gamma = staticmethod(math.gamma)

    def number(self, value: Fraction) -> complex:
        try:
            return complex(value.numerator / value.denominator)
        except OverflowError as error:
            raise TooLarge from error

    def real(self, value: complex) -> float:
        return complex(value).real

    def imaginary(self, value: complex) -> float:
        return complex(value).imag

    def whole(self, value: float) -> int:
        """The largest integer that is not above; an integer up to rounding counts as one."""
        return math.floor(value + 1e-9)

    def size(self, value: complex) -> int:
        """Binary logarithm of the absolute value."""
        size = abs(value)
        if not math.isfinite(size):
            raise TooLarge
        return math.frexp(size)[1]


_FLOATS = _Floats()


def in_floats(place: dict[str, Fraction], ordered: frozenset[str]) -> Evaluation:
    """An evaluation in double precision, with the values in `place` and the words in `ordered`."""
    return Evaluation(_FLOATS, place, bits=_BITS, steps=_STEPS, ordered=ordered)


def _clearly(first: Any, second: Any, one: Evaluation, other: Evaluation) -> bool | None:
    """Compares two values: rational ones exactly; doubles can only differ."""
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return first == second
    first, second = one.inexact(first), other.inexact(second)
    scale = max(one.largest, other.largest, 0)
    if scale > 900:
        return None
    return False if abs(first - second) > _CLEAR * 2.0**scale else None


def same(
    gold: Node, answer: Node, evaluate: _Evaluate = in_floats, judge: _Judge = _clearly
) -> bool | None:
    """Whether two formulas have the same values; None if that is unknown here.

    Args:
      gold: formula of the gold.
      answer: formula of the response.
      evaluate: computes both at given values of the variables.
      judge: decides whether two values are equal.
    """
    if gold == answer:
        return True

    def compare(first: Evaluation, second: Evaluation) -> bool | None:
        return judge(first.value(gold), second.value(answer), first, second)

    return _everywhere((gold, answer), compare, evaluate)


def proportional(
    gold: Node,
    answer: Node,
    ordered: bool,
    evaluate: _Evaluate = in_floats,
    judge: _Judge = _clearly,
) -> bool | None:
    """Whether one formula is a constant times the other, so that both are 0 at the same places.

    Args:
      gold: formula of the gold.
      answer: formula of the response.
      ordered: the constant must be positive, as for both sides of an inequality.
      evaluate: computes both at given values of the variables.
      judge: decides whether two values are equal.
    """
    ratios: list[Any] = []

    def compare(first: Evaluation, second: Evaluation) -> bool | None:
        left, right = first.value(gold), second.value(answer)
        if not left and not right:
            raise Undefined
        if not left or not right:
            return False
        left, right = first.both(left, right)
        ratio = right / left
        if ordered and (first.real(ratio) < 0):
            return False
        ratios.append(ratio)
        return judge(ratios[0], ratio, first, second) if len(ratios) > 1 else True

    if not all(any(part.kind in ("symbol", "word") for part in parts(n)) for n in (gold, answer)):
        return False
    verdict = _everywhere((gold, answer), compare, evaluate)
    return verdict if len(ratios) > 1 else verdict and False


def worked_out(node: Node, evaluate: _Evaluate = in_floats) -> Any:
    """The value of a formula without names; None if it has none, or not in this process."""
    try:
        return evaluate({}, frozenset()).value(node)
    except (ArithmeticError, KeyError, RecursionError):
        return None


def _everywhere(
    pair: tuple[Node, Node],
    compare: Callable[[Evaluation, Evaluation], bool | None],
    evaluate: _Evaluate,
) -> bool | None:
    """Compares at all points; at least one point must decide."""
    ordered = _ordered(*pair)
    written = {(part.kind, part.value) for side in pair for part in parts(side)}
    imaginary, sizes = ("constant", "i") in written, ("call", "abs") in written
    verdicts: list[bool | None] = []
    beyond: list[bool | None] = []  # where both sides leave the real numbers
    for place in points(pair, ordered):
        first, second = evaluate(place, ordered), evaluate(place, ordered)
        try:
            verdict = compare(first, second)
        except (Undefined, ZeroDivisionError):
            continue
        except (TooLarge, OverflowError, RecursionError):
            return None
        if not imaginary and first.complex != second.complex and (second.complex or sizes):
            return False
        (beyond if first.complex and not imaginary else verdicts).append(verdict)
        if False in verdicts:
            return False
    verdicts = verdicts or beyond
    if not verdicts or False in verdicts:
        return False
    return None if None in verdicts else True


def points(pair: tuple[Node, Node], ordered: frozenset[str]) -> list[dict[str, Fraction]]:
    """Where two formulas are compared: rational places that follow from them."""
    symbols = set(ordered)
    whole: set[str] = set()
    for side in pair:
        symbols |= free_symbols(side)
        for part in parts(side):
            if part.kind == "word" and part.value not in ordered:
                symbols |= set(part.value) - {"e", "i"}
            if part.kind == "series":
                whole |= free_symbols(part.items[0]) | free_symbols(part.items[1])
    if not symbols:
        return [{}]
    digest = hashlib.sha256(repr(pair).encode()).digest()
    names = sorted(symbols)
    found = []
    for number, scale in enumerate((1, 1, 5, 30)):
        place = {}
        for index, name in enumerate(names):
            seed = hashlib.sha256(digest + f"{number} {index}".encode()).digest()
            if name in whole:
                place[name] = Fraction(2 + seed[0] % 6)
            else:
                top, bottom = int.from_bytes(seed[:2], "big"), 17 + seed[2]
                place[name] = scale * (Fraction(1, 3) + Fraction(top % (3 * bottom), bottom))
        found.append(place)
    first = found[0]
    found += [{**first, name: -first[name]} for name in names if name not in whole][:6]
    return found


def _ordered(gold: Node, answer: Node) -> frozenset[str]:
    """The words that are read as names; none if one side writes out the products.

    Letters in lower case are a name only if the other side has them in another order.
    """
    words = [{p.value for p in parts(side) if p.kind == "word"} for side in (gold, answer)]
    found = set()
    for here, there in (words, words[::-1]):
        for word in here:
            twisted = any(sorted(word) == sorted(other) and word != other for other in there)
            capitals = any(not other.islower() for other in there) and not word.islower()
            if twisted or capitals:
                found.add(word)
    return frozenset(found)
