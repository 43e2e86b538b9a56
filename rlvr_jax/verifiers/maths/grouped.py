r"""Brackets: (a, b), [a, b), {a, b}, {x | …}, matrices, lines.

A vector in any notation is a tuple. Two entries may be an interval, so their brackets count; three
or more entries are a tuple in any brackets.
"""

import re
from dataclasses import replace

from rlvr_jax.verifiers.maths.formulas.identity import worked_out
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.lists import entries, flattened
from rlvr_jax.verifiers.maths.regions import LINE, intersection
from rlvr_jax.verifiers.maths.values import (
    Container,
    Equation,
    Expression,
    Infinity,
    Number,
    Parse,
    Qualified,
    Region,
    Relation,
    Unread,
    Value,
    to_tex,
)
from rlvr_jax.verifiers.nesting import enclosed, split

_MATRIX = re.compile(
    r"(.*?)\\begin\{([pbB]?matrix|smallmatrix|array)\}(?:\{[lcr| ]*\})?(.*)\\end\{\2\}(\^T)?$",
    re.DOTALL,
)
_CASES = re.compile(
    r"(?:\\begin\{cases\}(.*)\\end\{cases\}|\\\{\s*\\begin\{array\}\{[lcr]\}(.*)\\end\{array\})$",
    re.DOTALL,
)
_LINES = re.compile(
    r"\\begin\{(aligned|align\*?|gathered|gather\*?|split|equation\*?)\}(.*)\\end\{\1\}$", re.DOTALL
)
_UNIT_VECTOR = re.compile(r"\\(?:hat|vec|overrightarrow)\s*\{?\s*\\?([ijk])(?:math)?\s*\}?")


def read_grouped(text: str, parse: Parse) -> Value | None:
    """Reads the content of brackets; None if the text is not one bracket."""
    if text in ("\\emptyset", "\\{\\}", "\\{ \\}", "{}", "{ }"):
        return Container("set", ())
    if (match := _CASES.match(text)) and "&" not in text:
        return parse(_in_a_row((match[1] or match[2]).split("\\\\")))
    if (match := _MATRIX.match(text)) and "\\begin" not in match[3]:
        return _matrix(match, parse)
    if (vector := _components(text, parse)) is not None:
        return vector
    if (match := _LINES.match(text)) and "\\begin" not in match[2]:
        return parse(_in_a_row(match[2].replace("&", " ").split("\\\\")))
    transposed = text.endswith("^T")
    text = re.sub(r"^\\(?=\{)|\\(?=\}$)", "", text.removesuffix("^T").strip())
    if text.startswith("{") and text.endswith("}") and enclosed(text):
        return _set(text[1:-1].strip(), parse)
    if not (text[:1] in ("(", "[") and text[-1:] in (")", "]") and enclosed(text)):
        return None
    parts = entries(text[1:-1])
    if text[0] == "[" and (rows := _nested(parts)):
        return _of_rows(rows, "", parse)
    if len(parts) == 1:
        plain = text[0] + text[-1] in ("()", "[]") and parts[0].strip()
        return parse(parts[0]) if plain else None
    if len(parts) == 2:
        low, high = parse(parts[0]), parse(parts[1])
        kind = "(" if isinstance(low, Infinity) else text[0]  # infinite ends are open
        kind += ")" if isinstance(high, Infinity) else text[-1]
        items: tuple[Value, ...] = (low, high)
    else:
        kind, items = "()", tuple(map(parse, parts))
    if any(isinstance(item, Unread) for item in items) or (
        transposed and any(isinstance(item, Container) for item in items)
    ):
        return Unread(text)
    if "\\pm" in text or "\\mp" in text:
        return None  # several tuples
    return Container(kind, items)


def _in_a_row(lines: list[str]) -> str:
    """Lines as entries; a line that begins with a sign of equality continues the line before."""
    text = ", ".join(line.strip() for line in lines if line.strip())
    return re.sub(r",\s*(?==|\\approx(?![A-Za-z]))", " ", text)


def _nested(parts: list[str]) -> list[list[str]]:
    """The rows of [[a, b], [c, d]], none if the parts are not lists of one length."""
    parts = [part.strip() for part in parts]
    if not all(part[:1] == "[" and part[-1:] == "]" and enclosed(part) for part in parts):
        return []
    rows = [entries(part[1:-1]) for part in parts]
    alike = len({len(row) for row in rows}) == 1
    return rows if alike and len(rows) * len(rows[0]) > 1 else []


def _set(inside: str, parse: Parse) -> Value | None:
    conditions = split(inside, r"\||:")
    if len(conditions) == 2:
        return _described(*map(str.strip, conditions), parse)
    if len(conditions) > 2:
        return None
    return Container("set", tuple(dict.fromkeys(flattened(map(parse, entries(inside))))))


def _described(what: str, condition: str, parse: Parse) -> Value:
    r"""{x | a ≤ x < b}, with x \in \mathbb{R} before or after the bar."""
    name, *of = re.split(r"\\in(?![A-Za-z])", what, maxsplit=1)
    if re.sub(r"\s", "", "".join(of)) not in ("", "\\mathbb{R}") or not re.fullmatch(
        r"\\?[A-Za-z]+(?:_\{?\w+\}?)?", name.strip()
    ):
        family = parse(f"{what}, {condition}")  # {kπ : k ∈ ℤ}
        return family if isinstance(family, Qualified) else Unread(what)
    value = parse(condition)
    if isinstance(value, Qualified) and isinstance(value.value, Equation):
        named = value.value.left == name.strip() and not value.inside
        return replace(value, value=value.value.right) if named else Unread(condition)
    if isinstance(value, Container) and value.kind == "system":
        regions = [item for item in value.items if isinstance(item, Region)]
        if len(regions) == len(value.items):
            return intersection(LINE, *regions) or Unread(condition)
    if isinstance(value, Region):
        return replace(value, name="") if value.name in ("", name.strip()) else Unread(condition)
    if isinstance(value, Equation) and value.left == name.strip():
        return Container("set", tuple(flattened([value.right])))
    if isinstance(value, Container) and value.kind in ("list", "set"):
        return Container("set", value.items)
    return value if isinstance(value, Relation) else Unread(condition)


def _matrix(match: re.Match, parse: Parse) -> Value | None:
    before, _, cells, turned = match.groups()
    rows = [row.split("&") for row in cells.split("\\\\") if row.strip()]
    if not rows or len({len(row) for row in rows}) > 1:
        return None
    rows = [list(row) for row in zip(*rows, strict=True)] if turned else rows
    if len(rows) == len(rows[0]) == 1 and not before.strip():
        return parse(rows[0][0])
    return _of_rows(rows, before.strip(), parse)


def _of_rows(rows: list[list[str]], before: str, parse: Parse) -> Value:
    """A matrix; of one row or one column, a vector."""
    items = tuple(parse(cell) for row in rows for cell in row)
    if before:
        items = tuple(_times(before, item, parse) for item in items)
    kind = "()" if 1 in (len(rows), len(rows[0])) else f"{len(rows)}×{len(rows[0])}"
    if any(isinstance(item, Unread) for item in items):
        return Unread(str(rows))
    return Container(kind, items)


def _times(factor: str, item: Value, parse: Parse) -> Value:
    """An entry of a matrix with a factor before it."""
    tex = to_tex(item)
    factor = re.sub(r"(?:\\cdot|\\times|\*)\s*$", "", factor)
    if tex is None or not isinstance(item, Number | Expression):
        return Unread(factor)
    return parse("-(" + tex + ")" if factor == "-" else f"({factor})({tex})")


def _components(text: str, parse: Parse) -> Value | None:
    """2i + 3j of unit vectors, as (2, 3)."""
    names = set(_UNIT_VECTOR.findall(text))
    if not names:
        return None

    def at(name: str) -> str:
        return _UNIT_VECTOR.sub(lambda match: f"({int(match[1] == name)})", text)

    nothing = read_formula(at(""))
    if nothing is None or worked_out(nothing) != 0:
        return None
    return Container("()", tuple(parse(at(name)) for name in ("ijk" if "k" in names else "ij")))
