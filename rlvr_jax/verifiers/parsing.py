"""From the text of an answer to its value: numbers exactly, brackets by kind, the rest as TeX.

Takes what `extract.normalise` writes, up to MAX_CHARACTERS: regular expressions, one level of
brackets at a time, each part read once; what a computer algebra system would take long to read is
refused.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from rlvr_jax.verifiers.extract import MAX_CHARACTERS, normalise
from rlvr_jax.verifiers.values import Container, Expression, Number, Text, Value, right_side

__all__ = ["parse_answer"]

MAX_ARGUMENT = 10**4  # of an exponent or a factorial
MAX_DIGITS = 1000  # of a power that is worked out here; Python prints no more than 4300


@functools.lru_cache(maxsize=65536)
def parse_answer(text: str, choice: bool) -> Value | None:
    """Parses an answer; None if it is empty or too large to look at."""
    if len(text) > MAX_CHARACTERS:
        return None
    text = normalise(text)
    if not text or _too_large(text):
        return None
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
    depth = max(_depths(text), default=0) + text.count("\\in ")  # which nests what follows it
    return (
        bool(tower)
        or "!!" in bare
        or bool(re.search(r"\^\{?\(?\d+\)*+(?:\}\)*+)?!", bare))
        or depth > 24
    )


def _depths(text: str):
    depth = 0
    for character in text:
        depth += (character in "({[") - (character in ")}]")
        yield depth


def _bare(text: str) -> str:
    return "".join(text.split())


# A text is read in several ways with parts in common: without the memory, each level of brackets
# would double the time.
@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Value:
    text = text.strip()
    if (number := _number(text)) is not None:
        return number
    for parse in (_grouped, _several, _inequality, _equation):
        if (value := parse(text)) is not None:
            return value
    words = re.findall(r"[A-Za-z]+", text)
    if re.fullmatch(r"[A-Za-z][A-Za-z '-]*", text) and any(
        len(word) > 2 and word not in _FUNCTIONS for word in words
    ):
        return Text(" ".join(text.casefold().split()))
    if re.search(r"\d\s+\d", text):  # not a product, and not the number without the space
        return Text(" ".join(text.split()))
    return Expression(_bare_tex(text))


def _bare_tex(text: str) -> str:
    """Removes the spaces that TeX does not need behind a command."""
    return re.sub(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])|\s+", lambda m: f"{m[1]} " if m[1] else "", text)


_DECIMAL = r"(?:\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+)(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_UNIT = (
    r"(?:[mckdμn]?m|km|inch(?:es)?|in|ft|feet|foot|yards?|miles?|[mc]?[lL]|liters?|litres?|m?g|kg"
    r"|grams?|lbs?|pounds?|m?s|sec|seconds?|min|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?"
    r"|degrees?|radians?|rad|dollars?|cents?|euros?|percent|units?|square\s+units?|cubic\s+units?"
    r"|cm|mm|[mk]?W|[kM]?Hz|[kM]?J|K|[kM]?Pa|N|V|mph|km/h|m/s(?:\^\{?2\}?)?|cm/s)"
    r"(?:\^\{?[23]\}?)?"
)
_WITH_UNIT = re.compile(rf"(.*?\S)\s*(?:(%|°)|(?<=[\d}}\s])\s+({_UNIT}))$")
_INTEGER = re.compile(rf"({_DECIMAL})$")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\{(\d+)\}$")
_RATIO = re.compile(rf"({_DECIMAL})/({_DECIMAL})$")
_FRAC = re.compile(rf"\\frac\{{([-+]?{_DECIMAL})\}}\{{([-+]?{_DECIMAL})\}}$")
_MIXED = re.compile(r"(\d+)(?:\s*\\frac\{(\d+)\}\{(\d+)\}|\s+(\d+)/(\d+))$")
_POWER = re.compile(r"(\d{1,6})\^(?:(\d)|\{([-+]?\d{1,3})\}|\(([-+]?\d{1,3})\))$")
_SCIENCE = re.compile(
    rf"({_DECIMAL})(?:\s*(?:\\times|\\cdot|\*)\s*10\^(?:(\d)|\{{([-+]?\d{{1,3}})\}})"
    r"|[eE]([-+]?\d{1,3}))$"
)
_BASED = re.compile(r"\(?([0-9A-Fa-f]{1,60})\)?_(?:([2-9])|\{(\d{1,2})\})$")
_PI = re.compile(
    rf"(?:(?P<a>{_DECIMAL})?\s*(?:\\cdot|\\times|\*)?\s*\\pi\s*(?:/\s*(?P<b>{_DECIMAL}))?"
    rf"|\\frac\{{(?P<c>{_DECIMAL})?\s*\\pi\s*\}}\{{(?P<d>{_DECIMAL})\}}"
    rf"|\\frac\{{(?P<e>{_DECIMAL})\}}\{{(?P<f>{_DECIMAL})\}}\s*\\pi)$"
)
_FUNCTIONS = {"sin", "cos", "tan", "cot", "sec", "csc", "log", "exp", "sqrt", "max", "min", "abs"}


def _number(text: str) -> Number | None:
    """Reads a number with an optional sign and unit, exactly."""
    unit = ""
    if match := _WITH_UNIT.match(text):
        text = match[1].strip()
        unit = match[2] or re.sub(r"[\s{}]", "", match[3])
        unit = {"percent": "%", "degree": "°", "degrees": "°"}.get(unit, unit)
        unit = unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
    sign = 1
    if text[:1] in ("-", "+"):
        sign = -1 if text[0] == "-" else 1
        text = text[1:].lstrip()
    number = _unsigned(text)
    if number is None:
        return None
    return Number(sign * number.value, number.pi, unit, number.decimal)


def _unsigned(text: str) -> Number | None:
    try:
        if match := _INTEGER.match(text):
            return Number(_exact(match[1]), decimal="." in match[1])
        if match := _REPEATING.match(text):
            whole, once, again = match.groups()
            shift = 10 ** len(once)
            repeated = Fraction(int(again), 10 ** len(again) - 1) / shift
            return Number(Fraction(int(whole + once or "0"), shift) + repeated)
        if match := _RATIO.match(text) or _FRAC.match(text):
            return Number(_exact(match[1]) / _exact(match[2]))
        if match := _MIXED.match(text):
            whole, top, bottom = [group for group in match.groups() if group]
            return Number(Fraction(int(whole)) + Fraction(int(top), int(bottom)))
        if match := _POWER.match(text):
            exponent = next(group for group in match.groups()[1:] if group)
            if len(match[1]) * abs(int(exponent)) > MAX_DIGITS:
                return None
            return Number(Fraction(int(match[1])) ** int(exponent))
        if match := _SCIENCE.match(text):
            exponent = next(group for group in match.groups()[1:] if group)
            return Number(_exact(match[1]) * Fraction(10) ** int(exponent), decimal="." in match[1])
        if match := _BASED.match(text):
            return Number(Fraction(int(match[1], int(match[2] or match[3]))))
        if match := _PI.match(text):
            part = match.groupdict()
            top = part["a"] or part["c"] or part["e"] or "1"
            bottom = part["b"] or part["d"] or part["f"] or "1"
            return Number(_exact(top) / _exact(bottom), pi=True)
    except (ValueError, ZeroDivisionError):
        pass
    return None


def _exact(text: str) -> Fraction:
    return Fraction(re.sub("[, ]", "", text).rstrip(".") or "0")


def _split(text: str, separator: str) -> list[str]:
    """Splits where no bracket is open; any kind closes any other, for half-open intervals."""
    parts, depth, last, position = [], 0, 0, 0
    pattern = re.compile(separator)
    while position < len(text):
        if text[position] in "([{":
            depth += 1
        elif text[position] in ")]}":
            depth -= 1
        elif depth == 0 and (match := pattern.match(text, position)) and match.end() > position:
            parts.append(text[last:position])
            last = position = match.end()
            continue
        position += 2 if text.startswith("\\\\", position) else 1
    return [*parts, text[last:]]


def _enclosed(text: str) -> bool:
    """True if the first bracket closes at the very end."""
    depths = list(_depths(text))
    return depths[-1] == 0 and 0 not in depths[:-1]


_MATRIX = re.compile(r"\\begin\{([pbvB]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}(?:\^T)?$")


def _grouped(text: str) -> Value | None:
    """(a, b), [a, b), {a, b}, ⟨a, b⟩, matrices; a vector is a tuple, however it is written."""
    if (match := _MATRIX.match(text)) and "\\begin" not in match[2]:
        rows = [row.split("&") for row in match[2].split("\\\\") if row.strip()]
        items = tuple(_parse(cell) for row in rows for cell in row)
        if len(rows) == 1 or all(len(row) == 1 for row in rows):
            return Container("()", items)
        return Container(f"{len(rows)} rows", items)
    text = text.replace("\\langle", "(").replace("\\rangle", ")").removesuffix("^T").strip()
    text = re.sub(r"^\\(?=\{)|\\(?=\}$)", "", text)
    if text.startswith("{") and text.endswith("}") and _enclosed(text):
        inside = text[1:-1]
        if re.search(r"\\mid|\||:", inside):
            return None
        return Container("set", _distinct(_split(inside, ",")))
    if not (text[:1] in ("(", "[") and text[-1:] in (")", "]") and _enclosed(text)):
        return None
    parts = _split(text[1:-1], ",")
    if len(parts) == 1:
        return _parse(parts[0]) if text[0] + text[-1] in ("()", "[]") and parts[0].strip() else None
    # Two entries may be an interval, so that brackets tell; more are a tuple in any brackets.
    kind = text[0] + text[-1] if len(parts) == 2 else "()"
    if len(parts) == 2:  # infinite ends are open, whatever was written
        kind = "(" * ("infty" in parts[0]) + kind
        kind = kind[0] + (")" if "infty" in parts[1] else kind[-1])
    return Container(kind, tuple(_parse(part) for part in parts))


def _several(text: str) -> Value | None:
    """Unions; ± pairs; "a, b", "a and b", "a or b", also with "x =" before each."""
    if len(parts := _split(text, r"\\cup(?![A-Za-z])|\bor\b")) > 1 and all(map(str.strip, parts)):
        items = [_parse(part) for part in parts]
        if all(isinstance(item, Container) and item.kind in _INTERVALS for item in items):
            return Container("union", tuple(items))
    parts = [part for part in _split(text, r",|;|\band\b|\bor\b") if part.strip()]
    if len(parts) > 1:
        items = _distinct(parts)
        lefts = {item.tex.partition("=")[0] for item in items if right_side(item)}
        if not lefts:
            return Container("list", items)
        rights = tuple(right_side(item) or item for item in items)
        return Container("list", rights) if len(lefts) == 1 else Container("equations", items)
    if text.count("\\pm") == 1:
        signs = [text.replace("\\pm", sign).strip().removeprefix("+") for sign in "+-"]
        right = [sign.partition("=")[2] or sign for sign in signs]
        return Container("list", tuple(_parse(part.strip().removeprefix("+")) for part in right))
    return None


def _distinct(parts: list[str]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(_parse(part) for part in parts))


_INTERVALS = ("()", "[]", "(]", "[)")
_ORDER = re.compile(r"\\le(?![A-Za-z])|\\ge(?![A-Za-z])|<|>")
_NAME = re.compile(r"\\?[A-Za-z]+(?:_\{?\w+\}?)?$")


def _inequality(text: str) -> Value | None:
    """a < x ≤ b, x > a and x ∈ … become intervals."""
    name, inside, region = text.partition("\\in ")
    if inside and _NAME.match(name.strip()):
        return _parse(region)
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
    if len(signs) == 2 and _NAME.match(ends[1]):
        return _interval(ends[0], signs[0], ends[2], signs[1])
    if len(signs) == 1 and _NAME.match(ends[0]):
        return _interval("-\\infty", "<", ends[1], signs[0])
    if len(signs) == 1 and _NAME.match(ends[1]):
        return _interval(ends[0], signs[0], "\\infty", "<")
    return None


def _interval(low: str, low_sign: str, high: str, high_sign: str) -> Container:
    kind = ("(" if low_sign in "<>" else "[") + (")" if high_sign in "<>" else "]")
    return Container(kind, (_parse(low), _parse(high)))


def _equation(text: str) -> Value | None:
    sides = _split(text, "=")
    if len(sides) > 2 and all(_number(side.strip()) is not None for side in sides):
        # A statement. Of one about a single number math-verify would take that number.
        return Text(_bare(text))
    left, sign, right = text.partition("=")
    if not sign or not right.strip() or "=" in right:
        return None
    name = re.fullmatch(r"\s*\\?[A-Za-z]+(?:_\{?\w+\}?|\([A-Za-z]\))?'?\s*", left)
    return Expression(_bare_tex(text), _parse(right) if name else None)
