"""From the text of an answer to its value: numbers exactly, brackets by kind, the rest as TeX.

Takes what `notation.normalise` writes, up to MAX_CHARACTERS: regular expressions, one level of
brackets at a time, each part read once; what a computer algebra system would take long to read is
refused.
"""

from __future__ import annotations

import functools
import re

from rlvr_jax.verifiers.equations import read_equation, read_inequality
from rlvr_jax.verifiers.nesting import closing, depths, enclosed, split
from rlvr_jax.verifiers.notation import MAX_CHARACTERS, compact, normalise
from rlvr_jax.verifiers.numerals import read_number
from rlvr_jax.verifiers.units import split_unit
from rlvr_jax.verifiers.values import Container, Equation, Expression, Text, Value

__all__ = ["parse_answer"]

MAX_ARGUMENT = 10**4  # of an exponent or a factorial


@functools.lru_cache(maxsize=65536)
def parse_answer(text: str, choice: bool, grouped: bool = False) -> Value | None:
    """Parses an answer; None if it is empty or too large to look at.

    Args:
      choice: single letters are options.
      grouped: braces around one thing only group it, as TeX reads {3}; else they make it a set.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    text = normalise(text)
    if not text or _too_large(text):
        return None
    while grouped and _is_group(text):
        text = text[1:-1].strip()
    if choice and (letter := re.fullmatch(r"\(?([A-Za-z])\)?", text)):
        return Text(letter[1].upper())
    if _bare(text) == "\\emptyset" or _bare(text) == "\\{\\}":
        return Container("set", ())
    return _parse(text)


_DIGITS_IN_POWER = re.compile(r"\^\s*\{?\s*[-+(]*\s*(\d[\d,. ]*)")
_DIGITS_BEFORE_FACTORIAL = re.compile(r"(?<![\d,. ])[,. ]*+(\d[\d,. ]*+)\)*+\s*+!")


def _too_large(text: str) -> bool:
    """True for texts that would keep a computer algebra system busy: 9^{9^9}, (10^9)!, 3!!!!."""
    for pattern in (_DIGITS_IN_POWER, _DIGITS_BEFORE_FACTORIAL):
        for found in pattern.findall(text):
            if len(found) > 20 or float(re.sub(r"\D", "", found.partition(".")[0])) > MAX_ARGUMENT:
                return True
    bare = _bare(text)
    tower = re.search(r"\^\{?\(?[-\d.]+\}?\)?\^|\^\{[^{}]*\d\^\{?[\d(]|\^\([^()]*\d\^", bare)
    depth = max(depths(text), default=0) + text.count("\\in ")  # which nests what follows it
    return (
        bool(tower)
        or "!!" in bare
        or bool(re.search(r"\^\{?\(?\d+\)*+(?:\}\)*+)?!", bare))
        or depth > 24
    )


def _bare(text: str) -> str:
    return "".join(text.split())


def _is_group(text: str) -> bool:
    """True for {…} with one thing in it that is no condition of a set."""
    whole = text[:1] == "{" and closing(text, 0) == len(text) - 1 and bool(text[1:-1].strip())
    return whole and len(split(text[1:-1], r",|:|\||\\mid(?![A-Za-z])")) == 1


_FUNCTIONS = {"sin", "cos", "tan", "cot", "sec", "csc", "log", "exp", "sqrt", "max", "min", "abs"}
# math-verify adds numbers beside each other, drops a number's index and what dots stand for.
# Letters are unknowns, and one behind them is a factor: of πr²h, the h are no hours.
_NUMERIC = re.compile(r"(?:\\[A-Za-z]+|[^A-Za-z\\])*(?:[\d)}\]]|\\pi)")
_NOT_READ = re.compile(r"\d\s+\d|\d\s*\{\s*\d|[\d)]\}*\s*_|\\[lc]?dots(?![A-Za-z])")


# A text is read in several ways with parts in common: without the memory, each level of brackets
# would double the time.
@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Value:
    text = text.strip()
    if (number := read_number(text)) is not None:
        return number
    for read in (_grouped, _several):
        if (value := read(text)) is not None:
            return value
    for read in (read_inequality, read_equation):
        if (value := read(text, _parse)) is not None:
            return value
    words = re.findall(r"[A-Za-z]+", text)
    if re.fullmatch(r"[A-Za-z][A-Za-z '-]*", text) and any(
        len(word) > 2 and word not in _FUNCTIONS for word in words
    ):
        return Text(" ".join(text.casefold().split()))
    if _NOT_READ.search(text):
        return Text(" ".join(text.split()))
    measured, unit = split_unit(text)
    if unit in ("", "%", "°") or not _NUMERIC.fullmatch(measured):  # the algebra knows the signs
        return Expression(compact(text))
    return Expression(compact(measured), unit)


_MATRIX = re.compile(r"\\begin\{([pbB]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}(\^T)?$")


def _grouped(text: str) -> Value | None:
    """(a, b), [a, b), {a, b}, ⟨a, b⟩, matrices; a vector is a tuple, however it is written."""
    if (match := _MATRIX.match(text)) and "\\begin" not in match[2]:
        return _matrix(match[2], transposed=bool(match[3]))
    text = text.replace("\\langle", "(").replace("\\rangle", ")")
    transposed = text.endswith("^T")
    text = re.sub(r"^\\(?=\{)|\\(?=\}$)", "", text.removesuffix("^T").strip())
    if text.startswith("{") and text.endswith("}") and enclosed(text):
        inside = text[1:-1]
        if re.search(r"\\mid|\||:", inside):
            return None
        return Container("set", tuple(dict.fromkeys(map(_parse, split(inside, ",")))))
    if not (text[:1] in ("(", "[") and text[-1:] in (")", "]") and enclosed(text)):
        return None
    parts = split(text[1:-1], ",")
    if len(parts) == 1:
        return _parse(parts[0]) if text[0] + text[-1] in ("()", "[]") and parts[0].strip() else None
    # Two entries may be an interval, so that brackets tell; more are a tuple in any brackets.
    kind = text[0] + text[-1] if len(parts) == 2 else "()"
    if len(parts) == 2:  # infinite ends are open, whatever was written
        kind = "(" * ("infty" in parts[0]) + kind
        kind = kind[0] + (")" if "infty" in parts[1] else kind[-1])
    items = tuple(map(_parse, parts))
    if transposed and any(isinstance(item, Container) for item in items):
        return None
    return Container(kind, items)


def _matrix(cells: str, transposed: bool) -> Value | None:
    rows = [row.split("&") for row in cells.split("\\\\") if row.strip()]
    if not rows or len({len(row) for row in rows}) > 1:
        return None
    rows = list(zip(*rows, strict=True)) if transposed else rows
    items = tuple(_parse(cell) for row in rows for cell in row)
    return Container(
        "()" if 1 in (len(rows), len(rows[0])) else f"{len(rows)}×{len(rows[0])}", items
    )


_INTERVALS = ("()", "[]", "(]", "[)")


def _several(text: str) -> Value | None:
    """Unions; ± pairs; "a, b", "a and b", "a or b", also with "x =" before each."""
    if len(parts := split(text, r"\\cup(?![A-Za-z])|\bor\b")) > 1 and all(map(str.strip, parts)):
        items = [_parse(part) for part in parts]
        if all(isinstance(item, Container) and item.kind in _INTERVALS for item in items):
            return Container("union", tuple(items))
    parts = [part for part in split(text, r",|;|\band\b|\bor\b") if part.strip()]
    if len(parts) > 1:
        items = tuple(map(_parse, parts))
        equations = [item for item in items if isinstance(item, Equation)]
        if len({item.left for item in equations}) > 1 or not all(e.right for e in equations):
            return Container("equations", items)
        rights = (item.right if isinstance(item, Equation) else item for item in items)
        return Container("list", tuple(rights))
    if text.count("\\pm") == 1:
        signs = [text.replace("\\pm", sign).strip().removeprefix("+") for sign in "+-"]
        right = [sign.partition("=")[2] or sign for sign in signs]
        return Container("list", tuple(_parse(part.strip().removeprefix("+")) for part in right))
    return None
