r"""Equations, chains and inequalities: the value of an answer like "x = 5" or "0 ≤ x < 1".

The value of an equation is its right side if the left side names it: by a name, a value of a
function, or a formula of at least two symbols ("a + b = 5"). The value of 2x = 18 is not worked
out, so both sides would have to be 18. This is the rule of every chain without a name on the left:
10/2 = 5 and 5 = 5 = 5 are correct for 5, and 6 + 6 = 11 is never correct.

≈ may occur once. The text before it is the answer, and the decimal after it must be true to its
last digit, rounded or truncated. For a sum or a power (x² + y² = 4) as the gold, the value of the
right side is not enough.
"""

import re
from dataclasses import replace
from fractions import Fraction

from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import free_symbols, parts
from rlvr_jax.verifiers.maths.regions import complement, excluded, intersection, interval
from rlvr_jax.verifiers.maths.values import (
    Chain,
    Container,
    Equation,
    Infinity,
    Number,
    Parse,
    Piece,
    Region,
    Relation,
    Text,
    Unread,
    Value,
    approximate,
)
from rlvr_jax.verifiers.nesting import enclosed, split

_ORDER = r"\\le(?![A-Za-z])|\\ge(?![A-Za-z])|<|>|\\ne(?![A-Za-z])"
_SYMBOL = r"\\?[A-Za-z]+(?:_\{?\w+\}?)?'*"
_VARIABLE = rf"{_SYMBOL}(?:\([^()]*\))?"  # x, or f(x)
_LETTER = r"(?:\\[A-Za-z]+|[A-Za-z])(?:_\{?\w+\}?)?'*"
_WORDS = r"[A-Za-z][A-Za-z ']*"
_MARK = (
    r"\\(?:angle|triangle|overline|vec|overrightarrow|hat|widehat|bar|tilde|mathbf|boldsymbol"
    r"|mathcal)(?![A-Za-z])\s*"
)
_NAME = re.compile(
    rf"{_WORDS}|(?:{_MARK})?{_SYMBOL}|{_MARK}\{{{_SYMBOL}\}}|\({_SYMBOL}(?:\s*,\s*{_SYMBOL})+\)"
    r"|\\frac\{d\d?[a-zA-Z]\}\{d[a-zA-Z]\d?\}"
)
_DENIED = re.compile(r"\b(?:not|no|never|if|unless|when|except|without|isn't)\b", re.IGNORECASE)
# The argument follows, in brackets.
_VALUE = re.compile(r"(\\?)([A-Za-z]+)(?:_\{?\w+\}?)?'*(?:\^\{-1\})?\s*(?=[(\[])")
# Any other command may connect two statements (19 \implies x = 18).
_FUNCTIONS, _FUNCTIONALS, _GREEK, _COMMANDS = (
    frozenset(names.split())
    for names in (
        "sin cos tan cot sec csc arcsin arccos arctan log ln exp sqrt abs",
        "det dim deg Pr",
        "alpha beta gamma delta epsilon varepsilon theta lambda mu nu rho sigma tau phi varphi psi"
        " omega Gamma Delta Theta Phi Psi Sigma Omega ell",
        "frac cdot times div over pi angle triangle overline vec hat bar sum prod int lim infty"
        " min max gcd to",
    )
)
_FORMULA = re.compile(r"[A-Za-z0-9+\-*/:^_{}()|\[\]., ']+")
# A word with a space between it and a number or a factor is not a product: "19 if x = 18".
_WORDED = re.compile(r"[\w)}\]]\s+[A-Za-z]{2,}|[A-Za-z]{2,}\s+[\w({\[]")
_FLIPPED = {">": "<", "\\ge": "\\le"}


def read_equation(text: str, parse: Parse) -> Value | None:
    """Reads a text with = or ≈ outside of brackets; None if there is none."""
    exact, *rounded = split(text, r"\\approx(?![A-Za-z])")
    sides = [side.strip() for side in split(exact, r"=|\\equiv(?![A-Za-z])")]
    if len(sides) == 1 and not rounded:
        return None
    if len(rounded) > 1 or (rounded and len(split(rounded[0], "=")) > 1):
        return Unread(text)
    if rounded and sides == [""]:
        return parse(rounded[0])
    if not all(sides) or (rounded and not rounded[0].strip()):
        return Unread(text)
    if rounded and len(sides) == 1 and _is_name(sides[0]):
        sides, rounded = [*sides, rounded[0].strip()], []
    if not _is_name(sides[0]):  # 5 = x, 5 = x = 5
        named = [side for side in sides[1:] if _is_name(side)]
        rest = [side for side in sides if side not in named]
        if len(named) == 1 and all(map(_is_constant, rest)):
            sides = [*named, *rest]
    return _chain(text, sides, rounded[0] if rounded else None, parse)


def _chain(text: str, sides: list[str], rounded: str | None, parse: Parse) -> Value:
    left, others = sides[0], sides[1:]
    size = re.fullmatch(rf"\|\s*({_LETTER})\s*\|", left)
    if size and len(others) == 1 and not rounded and _is_constant(others[0]):
        left, others = size[1], [f"\\pm({others[0]})"]
    named = _is_name(left)
    labelled = bool(others) and (named or len(_symbols(left) or ()) > 1)
    values = tuple(parse(side) for side in (others if labelled else sides))
    right: Value = values[0] if len(values) == 1 and rounded is None else Chain(values)
    if rounded is not None:
        decimal = parse(rounded)
        if not isinstance(decimal, Number) or not _is_true(values[-1], decimal):
            return Unread(text)
        right = Chain(values, decimal)
    if not others:
        return right
    whole = named or not re.search(r"[-+^\d]", re.sub(r"_\{[^{}]*\}", "", left))
    constant = all(map(_is_constant, others))
    pair = (sides[0], sides[1]) if len(sides) == 2 and rounded is None else ("", "")
    if not labelled:
        return Equation(pair, "", right, constant and _is_constant(left), False)
    return Equation(pair, _plain(left), right, whole, named and constant)


def _is_true(exact: Value, decimal: Number) -> bool:
    """Whether a decimal equals the value to its last digit, rounded or truncated there."""
    value = approximate(exact)
    if value is None or decimal.pi or decimal.unit not in ("", getattr(exact, "unit", "")):
        return False
    digit = decimal.last_digit or 1
    found = Fraction(value) / digit
    wanted = decimal.value / digit
    near = abs(found - wanted)
    return near <= Fraction(1, 2) + Fraction(1, 10**9) or (
        near < 1 and abs(wanted) <= abs(found) + Fraction(1, 10**9)
    )


def read_inequality(text: str, parse: Parse) -> Value | None:
    """Reads a < x ≤ b, x > a, |x| < a, x ≠ a and x ∈ …; other relations as they are."""
    parts = re.split(r"\\in(?![A-Za-z])\s*", text, maxsplit=1)
    if len(parts) == 2 and re.fullmatch(_SYMBOL, name := parts[0].strip()):
        if re.fullmatch(r"\\mathbb\{[A-QS-Z]\}(?:\^.*)?", parts[1]):
            return Text(f"{_plain(name)} in {parts[1]}")
        value = parse(parts[1])
        if isinstance(value, Region):
            return replace(value, name=_plain(name))
        return value if isinstance(value, Container) else Unread(text)
    ends = [part.strip() for part in split(text, _ORDER)]
    if len(ends) == 1:
        return None
    signs = re.findall(_ORDER, text)
    if len(signs) != len(ends) - 1 or len(signs) > 2 or not all(ends) or "=" in text:
        return Unread(text)
    if signs == ["\\ne"]:
        return _unequal(ends, parse)
    if "\\ne" in signs or len({sign in _FLIPPED for sign in signs}) > 1:
        return Unread(text)
    if signs[0] in _FLIPPED:
        ends, signs = ends[::-1], [_FLIPPED[sign] for sign in signs[::-1]]
    return _between(ends, signs, parse)


def _between(ends: list[str], signs: list[str], parse: Parse) -> Value:
    """The value of an inequality with its ends in rising order."""
    closed = [sign == "\\le" for sign in signs]
    low, high = (Infinity(True), False), (Infinity(), False)
    if len(signs) == 2 and re.fullmatch(_VARIABLE, ends[1]):
        name, low, high = ends[1], (parse(ends[0]), closed[0]), (parse(ends[2]), closed[1])
    elif len(signs) == 1 and re.fullmatch(_VARIABLE, ends[0]) and not _is_size(ends[1]):
        name, high = ends[0], (parse(ends[1]), closed[0])
    elif len(signs) == 1 and re.fullmatch(_VARIABLE, ends[1]) and not _is_size(ends[0]):
        name, low = ends[1], (parse(ends[0]), closed[0])
    elif len(signs) == 2 and _is_size(ends[1]):
        both = [_between(ends[at : at + 2], [signs[at]], parse) for at in (0, 1)]
        found = all(isinstance(side, Region) for side in both) and intersection(*both)
        return found or Unread(ends[1])
    elif len(signs) == 1 and (size := _is_size(ends[0])):
        limits = parse(f"-({ends[1]})"), parse(ends[1])
        return Region((Piece(limits[0], closed[0], limits[1], closed[0]),), size)
    elif len(signs) == 1 and (size := _is_size(ends[1])):
        limits = parse(f"-({ends[0]})"), parse(ends[0])
        inner = Region((Piece(limits[0], not closed[0], limits[1], not closed[0]),), size)
        return complement(inner) or Unread(ends[0])
    else:
        pairs = zip(ends, signs, ends[1:], strict=False)
        relations = tuple(Relation(left, sign, right) for left, sign, right in pairs)
        return relations[0] if len(relations) == 1 else Container("system", relations)
    unread = [end for end, _ in (low, high) if isinstance(end, Unread)]
    return unread[-1] if unread else replace(interval(*low, *high), name=_plain(name))


def _unequal(ends: list[str], parse: Parse) -> Value:
    if re.fullmatch(_SYMBOL, ends[1]) and _is_constant(ends[0]):
        ends = ends[::-1]
    if re.fullmatch(_SYMBOL, ends[0]) and _is_constant(ends[1]):
        value = parse(ends[1])
        points = value.items if isinstance(value, Container) else (value,)
        region = excluded(points, _plain(ends[0]))
        if region is not None:
            return region
    return Relation(ends[0], "\\ne", ends[1])


def _is_size(side: str) -> str:
    match = re.fullmatch(rf"\|\s*({_LETTER})\s*\|", side)
    return _plain(match[1]) if match else ""


def _plain(name: str) -> str:
    """A name without signs that have no meaning."""
    name = re.sub(r"\\(?:angle|triangle)(?![A-Za-z])\s*|\s+", "", name)
    return re.sub(r"_\{(\w)\}", r"_\1", name)


def _is_name(side: str) -> bool:
    """True for x, x_{1}, θ, "Area of ABC", AB, (x, y), f(3)."""
    if _NAME.fullmatch(side):
        return side not in ("e", "i", "\\pi", "\\infty") and not _DENIED.search(side)
    if not (found := _VALUE.match(side)) or not enclosed(side[found.end() :]):
        return False
    # The 1 of sin(x) = 1 is not the answer.
    return found[2] in _GREEK | _FUNCTIONALS if found[1] else found[2] not in _FUNCTIONS


def _is_constant(side: str) -> bool:
    """Whether a side is a number, or numbers in brackets."""
    node = read_formula(side)
    if node is None:
        return _symbols(side) == set()
    return not free_symbols(node) and all(p.kind not in ("word", "apply") for p in parts(node))


def _symbols(side: str) -> set[str] | None:
    """The unknowns of a formula; None if it may be more than a formula. e, i, π are numbers."""
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
