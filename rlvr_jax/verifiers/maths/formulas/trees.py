"""Formulas as trees, which `reading` makes and `evaluation` computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Node:
    """A part of a formula.

    Fields:
      kind: without parts: "number", "constant" (pi, e, i, inf), "symbol", "word" (letters whose
        order counts). Operations: "sum", "product", "quotient", "power", "root" (of, degree),
        "call" (of a known function), "apply" (of another function), "factorial". Calculus: "series"
        (from, to, term), "derivative" (of), "integral" (of, from, to), "limit" (of, at). And
        "determinant" (entries by rows).
      items: the parts of the node.
      value: a `Fraction` or a name; for calculus and determinants the variable or the size.
    """

    kind: str
    items: tuple[Node, ...] = ()
    value: Any = None


class Unreadable(Exception):
    """The text is not a formula that this module knows."""


def number(value: int | Fraction) -> Node:
    """An exact number, as a node of a `Fraction`."""
    return Node("number", value=Fraction(value))


def leaf(kind: str, name: str) -> Node:
    """A node without parts: a constant, a symbol or a word, by its name."""
    return Node(kind, value=name)


def product(*factors: Node) -> Node:
    """A product whose factors are not products."""
    flat: list[Node] = []
    for factor in factors:
        flat += factor.items if factor.kind == "product" else [factor]
    return Node("product", tuple(flat))


def minus(node: Node) -> Node:
    """The node with the other sign: a number negated, anything else times -1."""
    if node.kind == "number":
        return number(-node.value)
    return product(number(-1), node)


def quotient(top: Node, bottom: Node) -> Node:
    """top / bottom, with both as written."""
    return Node("quotient", (top, bottom))


def call(name: str, *arguments: Node) -> Node:
    """A known function of its arguments, by a name of `names.ELEMENTARY`, or binom, C, P."""
    return Node("call", arguments, name)


PI = Node("constant", value="pi")


def parts(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.items


def unordered(node: Node) -> Node:
    """The formula with sorted terms and factors."""
    items = [unordered(item) for item in node.items]
    if node.kind in ("sum", "product"):
        return Node(node.kind, tuple(sorted(items, key=repr)))
    return Node(node.kind, tuple(items), node.value)


# Parts in which the name that they run over is bound.
_BOUND = {"series": (2,), "integral": (0,), "limit": (0,)}


def free_symbols(node: Node) -> frozenset[str]:
    """The names that need a value."""
    if node.kind == "symbol":
        return frozenset([node.value])
    found = [free_symbols(item) for item in node.items]
    if node.kind in _BOUND:
        variable = node.value[1] if node.kind == "series" else node.value
        found = [
            names - {variable} if place in _BOUND[node.kind] else names
            for place, names in enumerate(found)
        ]
    if node.kind == "derivative":
        found.append(frozenset([node.value[0]]))
    return frozenset().union(*found)
