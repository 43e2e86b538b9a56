"""Reads an answer as a value: numbers exactly, brackets by kind, other texts as formulas.

The text is one of `notation.normalise`, of up to MAX_CHARACTERS. Regular expressions read one level
of brackets at a time, each part once. Numbers that take long to compute are refused. `lists` reads
several values, `grouped` those in brackets.
"""

import functools
import re
from dataclasses import replace

from rlvr_jax.verifiers.maths.equations import read_equation, read_inequality
from rlvr_jax.verifiers.maths.formulas.reading import read_formula
from rlvr_jax.verifiers.maths.grouped import read_grouped
from rlvr_jax.verifiers.maths.lists import read_list
from rlvr_jax.verifiers.maths.notation import MAX_CHARACTERS, normalise
from rlvr_jax.verifiers.maths.numerals import read_number
from rlvr_jax.verifiers.maths.prose import (
    option_letters,
    read_named_set,
    read_prose,
    read_text,
    read_time,
)
from rlvr_jax.verifiers.maths.qualifiers import read_qualified
from rlvr_jax.verifiers.maths.units import split_unit
from rlvr_jax.verifiers.maths.values import (
    Expression,
    Infinity,
    Number,
    Ratio,
    Text,
    Unread,
    Value,
)
from rlvr_jax.verifiers.nesting import closing, depths, split

_MAX_ARGUMENT = 10**4  # of an exponent or a factorial


@functools.lru_cache(maxsize=65536)
def parse_answer(text: str, choice: bool, grouped: bool = False) -> Value | None:
    """Parses an answer; None if it is empty or too large.

    Args:
      choice: whether letters are options.
      grouped: whether braces around one value only group it, as in TeX; else they make a set.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    text = normalise(text)
    if not text or _too_large(text):
        return None
    while grouped and _is_group(text):
        text = text[1:-1].strip()
    if choice and (letters := option_letters(text)):
        return Text(letters)
    return _parse(text)


_DIGITS_IN_POWER = re.compile(r"\^\s*\{?\s*[-+(]*\s*(\d[\d,. ]*)")
_DIGITS_BEFORE_FACTORIAL = re.compile(r"(?<![\d,. ])[,. ]*+(\d[\d,. ]*+)\)*+\s*+!")


def _too_large(text: str) -> bool:
    """True for texts that would keep a computer algebra system busy: 9^{9^9^9}, (10^9)!, 3!!!!."""
    for pattern in (_DIGITS_IN_POWER, _DIGITS_BEFORE_FACTORIAL):
        for found in pattern.findall(text):
            if len(found) > 20 or float(re.sub(r"\D", "", found.partition(".")[0])) > _MAX_ARGUMENT:
                return True
    bare = _bare(text)
    depth = max(depths(text), default=0) + text.count("\\in ")  # which nests the set after it
    return (
        "!!" in bare
        or bool(re.search(r"\^\{?\(?\d+\)*+(?:\}\)*+)?!", bare))
        or _tower(bare) > _MAX_ARGUMENT
        or depth > 24
    )


def _tower(bare: str) -> float:
    """The exponent of the largest power of numbers on powers: 16 of 2^{2^4}."""
    largest = 0.0
    for tower in re.findall(r"(?<!\d)\d++(?:\^[({]*+-?\d++[)}]*+){2,}", bare):
        exponent = 1.0
        for number in map(float, reversed(re.findall(r"\d+", tower)[1:])):
            if exponent > 64:
                return float("inf")
            exponent = min(number, 1e6) ** exponent
        largest = max(largest, exponent)
    return largest


def _bare(text: str) -> str:
    return "".join(text.split())


def _is_group(text: str) -> bool:
    """True for {…} with one thing in it that is not a condition of a set."""
    whole = text[:1] == "{" and closing(text, 0) == len(text) - 1 and bool(text[1:-1].strip())
    return whole and len(split(text[1:-1], r",|;|:|\|")) == 1


# Letters are unknowns, and one after them is a factor: the h of πr²h are not hours.
_NUMERIC = re.compile(r"(?:\\[A-Za-z]+|[^A-Za-z\\])*(?:[\d)}\]!]|\\pi)")
# Numbers next to each other, an index of a number, and dots: compared as text.
_NOT_READ = re.compile(r"\d\s+\d|\d\s*\{\s*\d|[\d)]\}*\s*_|\\dots(?![A-Za-z])")


# A text is read in several ways that have parts in common. Without the cache, each level of
# brackets would double the time.
@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Value:
    text = text.strip()
    if text in ("\\infty", "+\\infty", "-\\infty", "+ \\infty", "- \\infty", "infinity"):
        return Infinity(text[0] == "-")
    if (time := read_time(text)) is not None:
        return time
    if (number := read_number(text)) is not None:
        return replace(number, tex=text)
    if (named := read_named_set(text, _parse)) is not None:
        return named
    for read in (read_qualified, read_grouped, read_list, read_inequality, read_equation):
        if (value := read(text, _parse)) is not None:
            return value
    if (ratio := _ratio(text)) is not None:
        return ratio
    if (words := read_text(text)) is not None:
        return words
    if _NOT_READ.search(text):
        return Text(_bare(text))
    measured, unit = split_unit(text)
    if unit in ("", "%", "°") or not _NUMERIC.fullmatch(measured):  # the formula has the signs
        measured, unit = text, ""
    if "$" in measured:  # $10 + $5
        measured, unit = measured.replace("$", ""), "$"
    if read_formula(measured) is None:
        return read_prose(text) or Unread(text)
    return _plain_number(measured) or Expression(measured, unit)


def _plain_number(text: str) -> Value | None:
    r"""A number with a sign or brackets around it, as -(5) and \pm(5) leave them."""
    if match := re.fullmatch(r"([-+]?)\(([^()]*)\)", text):
        number = read_number(match[2])
        if number is not None and not number.based:
            return replace(number, value=-number.value) if match[1] == "-" else number
    if match := re.fullmatch(r"([-+]?)\((\\infty|-\\infty|\+\\infty)\)", text):
        return Infinity((match[1] == "-") != (match[2][0] == "-"))
    return None


def _ratio(text: str) -> Value | None:
    """2 : 3, and a quotient of the same if there are two."""
    parts = split(text, r":|\bto\b")
    if len(parts) < 2 or not all(map(str.strip, parts)):
        return None
    items = tuple(map(_parse, parts))
    if all(isinstance(item, Number | Expression) for item in items):
        return Ratio(items)
    return Text(_bare(text)) if "\\dots" in text else Unread(text)
