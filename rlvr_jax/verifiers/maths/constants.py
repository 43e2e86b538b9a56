r"""Arbitrary constants: the C of x^2 + C and of Ce^{2x}, which may have any name.

A constant occurs once, and the formula is linear in it: as a separate term, as a coefficient of an
exponential, or as a coefficient of sine or cosine terms if there are several. C_1 and C_2 may be
coefficients of any function of the variable, as may the C of y = Cx. Names of physics and
parameters do not count: the c of mc^2, of ax^2 + bx + c, of hc/λ.
"""

import itertools
import re
from collections.abc import Iterator

from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.formulas.trees import Node, leaf, parts
from rlvr_jax.verifiers.maths.renaming import names_in, renamed
from rlvr_jax.verifiers.maths.values import Equation, Expression, Value

_NAME = re.compile(r"[CcK](?:_\{\w+\})?|[ABD]")
_MOST = 3  # constants whose orders are tried
_VARIABLES = frozenset("xyztuswr")
_PARAMETERS = frozenset("bm")  # next to which a c is also a parameter
_WAVES = ("sin", "cos", "sinh", "cosh")


def with_same_constants(gold: Value, answer: Value) -> Iterator[tuple[Value, Value]]:
    """The two values with their arbitrary constants named alike, in every order."""
    letters = [frozenset().union(*map(names_in, _sides(value))) for value in (gold, answer)]
    candidates = [sorted(filter(_NAME.fullmatch, found)) for found in letters]
    if not 0 < len(candidates[0]) == len(candidates[1]) <= _MOST:
        return
    rest = [found - set(own) for found, own in zip(letters, candidates, strict=True)]
    alike = candidates[0] == candidates[1] and len(candidates[0]) == 1
    if rest[0] != rest[1] or rest[0] & _PARAMETERS or alike:
        return
    fresh = [rf"\Xi_{{{number}}} " for number in range(len(candidates[0]))]
    first = renamed(gold, dict(zip(candidates[0], fresh, strict=True)))
    if not _arbitrary(first, candidates[0]):
        return
    for order in itertools.permutations(candidates[1]):
        second = renamed(answer, dict(zip(order, fresh, strict=True)))
        if not _arbitrary(second, order):
            return
        yield first, second


def _sides(value: Value) -> tuple[str, ...]:
    if isinstance(value, Equation):
        return value.tex
    return (value.tex,) if isinstance(value, Expression) else ()


def _arbitrary(value: Value, names: tuple[str, ...] | list[str]) -> bool:
    r"""Whether \Xi_{0}, \Xi_{1}, … (the new names of `names`) are all arbitrary constants."""
    sides = [read_formula(tex) for tex in _sides(value)]
    if None in sides or not any(_varies(side) and side.kind != "symbol" for side in sides):
        return False
    found = [place for side in sides for place in _places(side, ())]
    letters = {part.value for side in sides for part in parts(side) if part.kind == "symbol"}
    solution = any(side == leaf("symbol", "y") for side in sides) and len(letters) == 3
    for number, name in enumerate(names):
        own = [beside for symbol, beside in found if symbol == rf"\Xi_{{{number}}}"]
        if len(own) != 1 or own[0] is None or not _is_free(name, own[0], len(names), solution):
            return False
    return True


def _is_free(name: str, beside: tuple[Node, ...], num_names: int, solution: bool) -> bool:
    """Whether a name with these factors may be an arbitrary constant.

    Args:
      solution: y is given as a function of one variable and this constant.
    """
    curves = ("exp", *_WAVES) if num_names > 1 else ("exp",)
    for factor in filter(_varies, beside):
        power = factor.kind == "power" and factor.items[0] == leaf("constant", "e")
        if power or (factor.kind == "call" and factor.value in curves):
            return True
    if name in ("A", "B", "D"):
        return False
    return not beside or ((solution or "_" in name) and any(map(_varies, beside)))


def _places(node: Node, beside: tuple[Node, ...] | None) -> Iterator[tuple[str, tuple | None]]:
    """The names of a formula with the factors next to them; None if it is not linear in them."""
    if node.kind == "symbol":
        yield node.value, beside
    for place, item in enumerate(node.items):
        if beside is None or node.kind not in ("sum", "product", "quotient"):
            inner = None
        elif node.kind == "sum":
            inner = beside
        elif node.kind == "product":
            inner = (*beside, *node.items[:place], *node.items[place + 1 :])
        else:
            inner = (*beside, node.items[1]) if place == 0 else None
        yield from _places(item, inner)


def _varies(node: Node) -> bool:
    names = {part.value for part in parts(node) if part.kind == "symbol"}
    names |= {letter for part in parts(node) if part.kind == "word" for letter in part.value}
    return bool(names & _VARIABLES) or "\\theta" in names
