r"""Several answers: "a, b", "a and b", "a or b", unions, ±, systems.

A comma with a space after it separates. A comma without one does not, between groups of three
digits. "or" binds less than a comma if equations are on its sides. Inequalities of one variable
with a comma between them mean their intersection, or their union if the intersection is empty.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rlvr_jax.verifiers.maths.regions import (
    as_region,
    complement,
    excluded,
    intersection,
    is_interval,
    is_point,
    joined_rays,
    union,
)
from rlvr_jax.verifiers.maths.values import (
    Container,
    Equation,
    Infinity,
    Number,
    Parse,
    Region,
    Relation,
    Unread,
    Value,
)
from rlvr_jax.verifiers.nesting import split

_MAX_SIGNS = 4  # largest number of ± in one answer
_OR = r"\bor\b"
_AND = r"\band\b"
_LOOSE = r",(?=\s)|,(?!\d{3}(?!\d))|(?<!\d),"


def read_list(text: str, parse: Parse) -> Value | None:
    """Reads several values as one; None if there is only one."""
    for read in (_difference, _union, _several, _plus_minus):
        if (value := read(text, parse)) is not None:
            return value
    return None


def entries(text: str) -> list[str]:
    """The parts between commas or semicolons; a comma between thousands does not separate."""
    if ";" in text and len(parts := split(text, ";")) > 1:
        return parts
    return split(text, _LOOSE if re.search(r",\s", text) else ",")


def _difference(text: str, parse: Parse) -> Value | None:
    """A without B."""
    parts = split(text, r"\\setminus(?![A-Za-z])")
    if len(parts) == 1 and (match := re.fullmatch(r"(\\mathbb\{R\})\s*-\s*(\\\{.*\})", text)):
        parts = [match[1], match[2]]
    if len(parts) != 2:
        return None
    whole, removed = (as_region(parse(part)) for part in parts)
    outside = removed and complement(removed)
    return (whole and outside and intersection(whole, outside)) or Unread(text)


def _union(text: str, parse: Parse) -> Value | None:
    for sign, join in (
        (r"\\cup(?![A-Za-z])", union),
        (r"\\cap(?![A-Za-z])", lambda regions: intersection(*regions)),
    ):
        parts = split(text, sign)
        if len(parts) > 1:
            regions = [as_region(parse(part)) for part in parts]
            found = None if None in regions else join(regions)
            return found or (None if None in regions else Unread(text))
    return None


def _several(text: str, parse: Parse) -> Value | None:
    alternatives = [part for part in split(text, rf",?\s*{_OR}") if part.strip()]
    if len(alternatives) > 1:
        values = [parse(part) for part in alternatives]
        if any(isinstance(value, Container) and value.kind == "system" for value in values):
            return Container("list", tuple(values))
        if all(isinstance(value, Region) for value in values):
            return (_named_alike(values) and union(values)) or Container("list", tuple(values))
    separators = rf",?\s*{_AND}|,?\s*{_OR}"
    pieces = split(text, separators)
    parts = []
    for piece in pieces:  # 2,500 is one of several numbers
        whole = len(pieces) > 1 and isinstance(parse(piece), Number)
        parts += [piece] if whole else entries(piece)
    if len(parts) == len(pieces) == 1:
        return None
    parts = [part.strip() for part in parts if part.strip()]
    if len(parts) < 2:
        return parse(parts[0]) if parts and parts[0] != text else None
    values = [parse(part) for part in parts]
    if mixed := _mixed(values, text):
        return Container("list", tuple(values), mixed)
    found = _joined(values, text)
    if len(alternatives) > 1 and isinstance(found, Container) and found.kind == "system":
        return replace(found, kind="choice")  # x = 1 or y = 4
    return found


def _mixed(values: list[Value], text: str) -> Number | None:
    """The mixed number that an integer and a fraction below 1 may be."""
    if len(values) > 2 or not re.search(r"\d\s+and\s+[\\\d]", text):
        return None
    whole, part = values
    if not (isinstance(whole, Number) and isinstance(part, Number)):
        return None
    plain = whole == Number(whole.value) and part == Number(part.value, unit=part.unit)
    proper = whole.value.denominator == 1 and whole.value > 0 and 0 < part.value < 1
    return replace(part, value=whole.value + part.value) if plain and proper else None


def _joined(values: list[Value], text: str) -> Value:
    if any(isinstance(value, Unread) for value in values):
        return Unread(text)
    if isinstance(values[0], Region) and _is_hole(values[0]):
        # x ≠ 1, 2
        others = [value for value in values[1:] if not isinstance(value, Region | Equation)]
        if others and len(others) == len(values) - 1:
            return excluded([values[0].pieces[0].high, *others], values[0].name) or Unread(text)
    if all(isinstance(value, Region) for value in values) and _named_alike(values):
        regions = [replace(value) for value in values]
        found = joined_rays(regions) if re.search(r",|;|\band\b", text) else union(regions)
        return found or Unread(text)
    ranges = [as_region(value) for value in values]
    if None not in ranges and all(map(is_interval, values)) and not all(map(is_point, values)):
        return union(ranges)
    return _listed(values)


def _listed(values: list[Value]) -> Value:
    """A list of values; of equations that name different things, a system."""
    equations = [value for value in values if isinstance(value, Equation)]
    bases = {re.sub(r"_.*", "", equation.left) for equation in equations}
    indexed = all("_" in equation.left for equation in equations)
    names = {equation.left for equation in equations}
    related = any(isinstance(value, Relation | Region) for value in values)
    if related or not all(equation.left for equation in equations):
        return Container("system", tuple(values))
    if len(names) > 1 and not (len(bases) == 1 and indexed):
        return Container("system", tuple(values))
    rights = (value.right if isinstance(value, Equation) else value for value in values)
    return Container("list", tuple(flattened(rights)))


def flattened(values: Iterable[Value]) -> Iterator[Value]:
    """The values, with each list replaced by its entries: ±1, ±2."""
    for value in values:
        inner = isinstance(value, Container) and value.kind == "list"
        yield from value.items if inner else [value]


def _plus_minus(text: str, parse: Parse) -> Value | None:
    r"""±a ± b as four values; ∓ takes the other sign than ±."""
    signs = re.findall(r"\\(pm|mp)(?![A-Za-z])", text)
    if not signs:
        return None
    if len(signs) > _MAX_SIGNS:
        return Unread(text)
    linked = "mp" in signs
    found = []
    for choice in itertools.product("+-", repeat=1 if linked else len(signs)):
        chosen = iter(choice * len(signs) if linked else choice)
        written = re.sub(
            r"\\(pm|mp)(?![A-Za-z])\s*",
            lambda match, chosen=chosen: "-+"[(next(chosen) == "+") == (match[1] == "pm")],
            text,
        )
        written = re.sub(r"(^|[=({,\[])\s*\+", r"\1", written).strip()
        found.append(parse(written))
    rights = [value.right if isinstance(value, Equation) else value for value in found]
    first = found[0]
    if isinstance(first, Equation) and not first.left:
        return Unread(text)
    items = Container("list", tuple(dict.fromkeys(rights)))
    return replace(first, right=items, tex=("", "")) if isinstance(first, Equation) else items


def _named_alike(values: Sequence[Value]) -> bool:
    return len({value.name for value in values if isinstance(value, Region)} - {""}) <= 1


def _is_hole(region: Region) -> bool:
    """Whether it is all numbers but one."""
    ends = [region.pieces[0].low, region.pieces[-1].high] if region.pieces else []
    return (
        len(region.pieces) == 2
        and all(isinstance(end, Infinity) for end in ends)
        and region.pieces[0].high == region.pieces[1].low
    )
