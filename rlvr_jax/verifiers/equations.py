r"""Equations and inequalities: which value an answer like "x = 5" or "0 ≤ x < 1" gives.

An equation gives its right side as the value of a left side that stands for one: a name, a value of
a function, a formula of at least two symbols ("a + b = 5"). Of 2x = 18 and x - 1 = 18 the value has
still to be worked out, and 10/2 = 5 is a statement about numbers. In a chain all sides but the
first have to be the value: of "A = πr² = 25π" one would have to know r, and "x = 19 y = 18" may be
two answers. ≈ is read as =, so that x ≈ 3.46 gives a value and 2√3 ≈ 3.46 none. A sum or a power
(x² + y² = 4) says more than its right side: where it is the gold, the value alone is not enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rlvr_jax.verifiers.nesting import enclosed, split
from rlvr_jax.verifiers.notation import compact
from rlvr_jax.verifiers.values import Container, Equation, Steps, Value

__all__ = ["read_equation", "read_inequality"]

Parse = Callable[[str], Value]

_ORDER = re.compile(r"\\le(?![A-Za-z])|\\ge(?![A-Za-z])|<|>")
_SYMBOL = r"\\?[A-Za-z]+(?:_\{?\w+\}?)?"
_WORDS = r"[A-Za-z][A-Za-z ']*"
_MARK = r"\\(?:angle|triangle|overline|vec|hat|bar|mathbf|boldsymbol)(?![A-Za-z])\s*"
_NAME = re.compile(
    rf"{_WORDS}|(?:{_MARK})?{_SYMBOL}'*|{_MARK}\{{{_SYMBOL}\}}|\({_SYMBOL}(?:\s*,\s*{_SYMBOL})+\)"
)
# The argument follows, in brackets.
_VALUE = re.compile(r"(\\?)([A-Za-z]+)(?:_\{?\w+\}?)?'*(?:\^\{-1\})?\s*(?=[(\[])")
# Any other command may join two statements (19 \implies x = 18).
_FUNCTIONS, _FUNCTIONALS, _GREEK, _COMMANDS = (
    frozenset(names.split())
    for names in (
        "sin cos tan cot sec csc arcsin arccos arctan log ln exp sqrt abs",
        "det dim deg Pr",
        "alpha beta gamma delta epsilon varepsilon theta lambda mu nu rho sigma tau phi varphi psi"
        " omega Gamma Delta Theta Phi Psi Sigma Omega ell",
        "frac cdot times div over pi angle triangle overline vec hat bar sum prod int lim infty"
        " min max gcd",
    )
)
_FORMULA = re.compile(r"[A-Za-z0-9+\-*/:^_{}()|\[\]., ']+")
# A word that a space keeps from a number or a factor is no product: "19 if x = 18".
_WORDED = re.compile(r"[\w)}\]]\s+[A-Za-z]{2,}|[A-Za-z]{2,}\s+[\w({\[]")


def read_equation(text: str, parse: Parse) -> Equation | None:
    """Reads a text with = outside of brackets; None if there is none, or nothing behind it."""
    sides = [side.strip() for side in split(text, r"=|\\approx(?![A-Za-z])")]
    if len(sides) < 2 or not sides[-1]:
        return None
    if _is_name(sides[-1]) and _symbols(sides[0]) == set():
        sides.reverse()  # 5 = x
    left, *others = sides
    named = _is_name(left)
    right = None
    if named or len(_symbols(left) or ()) > 1:
        right = parse(others[0]) if len(others) == 1 else Steps(tuple(map(parse, others)))
    whole = named or not re.search(r"[-+^\d]", re.sub(r"_\{[^{}]*\}", "", left))
    return Equation("=".join(map(compact, sides)), compact(left), right, whole)


def read_inequality(text: str, parse: Parse) -> Value | None:
    """Makes an interval of a < x ≤ b or x > a, and of x ∈ … what stands there; else None."""
    name, inside, region = text.partition("\\in ")
    if inside and re.fullmatch(_SYMBOL, name.strip()):
        return parse(region)
    signs = _ORDER.findall(text)
    ends = [part.strip() for part in _ORDER.split(text)]
    if (
        len(signs) not in (1, 2)
        or not all(ends)
        or len({sign in (">", "\\ge") for sign in signs}) > 1
    ):
        return None
    if signs[0] in (">", "\\ge"):
        ends, signs = ends[::-1], signs[::-1]
    if len(signs) == 2 and re.fullmatch(_SYMBOL, ends[1]):
        low, high = (ends[0], signs[0]), (ends[2], signs[1])
    elif len(signs) == 1 and re.fullmatch(_SYMBOL, ends[0]):
        low, high = ("-\\infty", "<"), (ends[1], signs[0])
    elif len(signs) == 1 and re.fullmatch(_SYMBOL, ends[1]):
        low, high = (ends[0], signs[0]), ("\\infty", "<")
    else:
        return None
    kind = ("(" if low[1] in "<>" else "[") + (")" if high[1] in "<>" else "]")
    return Container(kind, (parse(low[0]), parse(high[0])))


def _is_name(side: str) -> bool:
    """True for x, x_{1}, θ, "Area of ABC", AB, (x, y), f(3)."""
    if _NAME.fullmatch(side):
        return True
    if not (found := _VALUE.match(side)) or not enclosed(side[found.end() :]):
        return False
    # Of sin(x) = 1 the 1 is not what is asked for.
    return found[2] in _GREEK | _FUNCTIONALS if found[1] else found[2] not in _FUNCTIONS


def _symbols(side: str) -> set[str] | None:
    """The unknowns of a formula; None for what may be more than a formula. e, i, π are numbers."""
    side = re.sub(r"(\\[A-Za-z]+)_\{[^{}]*\}", r"\1", side)  # of a sum or a limit
    commands = set(re.findall(r"\\([A-Za-z]+)", side))
    plain = re.sub(r"\\[A-Za-z]+", "+", side)
    if commands - _COMMANDS - _GREEK - _FUNCTIONS - _FUNCTIONALS:
        return None
    if not _FORMULA.fullmatch(plain) or _WORDED.search(plain):
        return None
    plain = re.sub("|".join(_FUNCTIONS), "+", plain)
    found = re.findall(r"[A-Za-z](?:_\{[^{}]*\})?(?:\(\d+\))?", plain)
    return {*found, *(commands & _GREEK)} - {"e", "i"}
