r"""Reads the commands of a formula: \frac, \sqrt, \sum, \int, accents, names."""

import copy
import re
from collections.abc import Callable, Mapping

from rlvr_jax.verifiers.maths.formulas import names
from rlvr_jax.verifiers.maths.formulas.symbols import function, named
from rlvr_jax.verifiers.maths.formulas.tokens import Token, Tokens
from rlvr_jax.verifiers.maths.formulas.trees import (
    PI,
    Node,
    Unreadable,
    call,
    leaf,
    number,
    quotient,
)

_MAX_ROWS = 6  # of a determinant


def derivative(reader: Tokens, text: str) -> Node:
    r"""\frac{d}{dx} takes the term that follows; \frac{dy}{dx} is a name."""
    plain = re.sub(r"\\frac|\\partial|[\s{}^]", lambda m: "d" * (m[0] == "\\partial"), text)
    order, of, variable = re.fullmatch(r"d(\d?)([A-Za-z]?)d([A-Za-z])\d?", plain).groups()
    if of:
        return leaf("symbol", f"d{order}{of}/d{variable}{order}")
    if int(order or 1) > 4:
        raise Unreadable
    return Node("derivative", (reader.term(),), (variable, int(order or 1)))


def _root(reader: Tokens, _: str) -> Node:
    degree = number(2)
    if reader.take("["):
        degree = reader.content()
        reader.need("]")
    of = reader.group() if reader.at("{", "(") else reader.atom()
    return Node("root", (of, degree))


def _figure(reader: Tokens, _: str) -> Node:
    r"""\angle ABC is named by its letters."""
    token = reader.peek()
    if token is None or not (token.text[:1].isupper() or token.text == "{"):
        raise Unreadable
    return reader.atom()


def _accented(reader: Tokens, name: str) -> Node:
    if reader.at("{"):
        inside = "".join(reader.inside())
        if names.is_decorated(name, inside):
            return reader.group()
        reader.group()
    else:
        token = reader.next()
        if token.kind not in ("letters", "command") or len(token.text) > 1 != (
            token.text[0] == "\\"
        ):
            raise Unreadable
        inside = token.text
        if names.is_decorated(name, inside):
            return named(reader, inside)
    return named(reader, f"\\{name} {inside}")


def _series(reader: Tokens, name: str) -> Node:
    scripts = {}
    for _ in range(2):
        sign = reader.next().text
        if sign == "_":
            reader.need("{")
            variable = reader.next()
            reader.need("=")
            scripts[sign] = reader.content()
            reader.need("}")
        elif sign == "^":
            scripts[sign] = reader.group() if reader.at("{") else reader.atom()
    if set(scripts) != {"_", "^"} or variable.kind != "letters" or len(variable.text) > 1:
        raise Unreadable
    outer, reader.bound = reader.bound, reader.bound | {variable.text}
    items = (scripts["_"], scripts["^"], reader.signed(reader.term))
    reader.bound = outer
    return Node("series", items, (name, variable.text))


def _integral(reader: Tokens, _: str) -> Node:
    scripts = {}
    while reader.at("_", "^"):
        sign = reader.next().text
        scripts[sign] = reader.group() if reader.at("{") else reader.signed(reader.atom)
    depth = 0
    for place in range(reader.place, len(reader.tokens)):
        token = reader.tokens[place]
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        match = re.fullmatch(r"([A-Za-z]*)d([A-Za-z])", token.text)
        if depth == 0 and match and token.kind == "letters":
            break
    else:
        raise Unreadable
    inner = copy.copy(reader)
    inner.tokens = reader.tokens[:place]
    if match[1]:
        inner.tokens = [*inner.tokens, Token("letters", match[1], token.spaced)]
    body = number(1) if inner.peek() is None else inner.sum()
    if inner.peek() is not None or len(scripts) == 1:
        raise Unreadable
    reader.place = place + 1
    bounds = (scripts["_"], scripts["^"]) if scripts else ()
    return Node("integral", (body, *bounds), match[2])


def _limit(reader: Tokens, _: str) -> Node:
    reader.need("_")
    reader.need("{")
    variable = reader.next()
    reader.need("\\to")
    inner = reader.signed(reader.term) if not reader.at("}") else None
    reader.need("}")
    if inner is None or variable.kind != "letters" or len(variable.text) > 1:
        raise Unreadable
    return Node("limit", (reader.signed(reader.term), inner), variable.text)


def _determinant(reader: Tokens, _: str) -> Node:
    r"""\begin{vmatrix}a & b \\ c & d\end{vmatrix}."""
    if reader.texts(3) != ["{", "vmatrix", "}"]:
        raise Unreadable
    reader.place += 3
    rows, bars = [[]], reader.bars
    reader.bars = 0
    while not reader.take("\\end"):
        rows[-1].append(reader.content())
        if reader.take("\\\\"):
            rows.append([])
        elif not reader.take("&") and not reader.at("\\end"):
            raise Unreadable
    reader.bars = bars
    if reader.texts(3) != ["{", "vmatrix", "}"]:
        raise Unreadable
    reader.place += 3
    rows = [row for row in rows if row]
    if not 0 < len(rows) <= _MAX_ROWS or {len(row) for row in rows} != {len(rows)}:
        raise Unreadable
    return Node("determinant", tuple(cell for row in rows for cell in row), len(rows))


COMMANDS: Mapping[str, Callable[[Tokens, str], Node]] = {
    **dict.fromkeys(names.SYMBOLS, lambda reader, name: named(reader, f"\\{name}")),
    **dict.fromkeys(names.ACCENTS, _accented),
    **dict.fromkeys(names.PREFIXES, _figure),
    **dict.fromkeys(names.ELEMENTARY | names.FUNCTIONALS, function),
    **dict.fromkeys(("sum", "prod"), _series),
    "begin": _determinant,
    "binom": lambda reader, _: call("binom", reader.group(), reader.group()),
    "frac": lambda reader, _: quotient(reader.group(), reader.group()),
    "infty": lambda *_: leaf("constant", "inf"),
    "int": _integral,
    "lim": _limit,
    "pi": lambda *_: PI,
    "sqrt": _root,
}
