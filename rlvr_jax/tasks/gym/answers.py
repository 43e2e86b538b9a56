"""Equal answers to reasoning-gym questions whose scorers reward incorrect answers or run text.

Each function decides whether an answer is the gold in another spelling. Both are texts without
white space around them. The text must be nothing but the answer: more could be a second answer.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any


def is_padded(answer: str, gold: str) -> bool:
    """Whether an answer has all words and numbers of the gold, in a row, and further ones.

    Further words are a second answer or talk. The zeros of 7.0 do not count.
    """
    found, wanted = (re.findall(r"\w+", text.casefold()) for text in (answer, gold))
    if not wanted or len(found) <= len(wanted):
        return False
    if answer.startswith(gold) and re.fullmatch(r"\.0*", answer[len(gold) :]):
        return False
    return f" {' '.join(wanted)} " in f" {' '.join(found)} "


_WHOLE = re.compile(r"([-+]?)\$?(\d{1,3}(?:,\d{3})+|\d+)(?:\.0*)?", re.ASCII)
_DECIMAL = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,400})(?:\.\d{0,400})?(?:[eE][-+]?\d{1,3})?", re.ASCII
)
_PART = re.compile(r"([-+]?)(\d{1,40}(?:\.\d{1,40})?)?([ij])?", re.ASCII)
_FRACTION = re.compile(
    r"\$?\s*(?:(\d+)\s*/\s*(\d+)|\\d?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\})\s*\$?"
)


def _whole(text: str) -> tuple[bool, str] | None:
    """Sign and digits; not an int, as Python refuses to read very many digits."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        return None
    digits = match[2].replace(",", "").lstrip("0") or "0"
    return match[1] == "-" and digits != "0", digits


def _fraction(text: str) -> tuple[str, ...] | None:
    match = _FRACTION.fullmatch(text)
    return match and tuple(digits.lstrip("0") for digits in match.groups() if digits)


def _numbers(text: str) -> list[float] | None:
    try:
        listed = json.loads(text.replace("'", '"'))
        numbers = [float(number) for number in listed] if isinstance(listed, list) else [math.nan]
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _decimal(text: str) -> Fraction | None:
    """The number; commas may separate groups of three digits."""
    if not _DECIMAL.fullmatch(text):
        return None
    return Fraction(text.replace(",", ""))


def _rows(text: str) -> list[list[Fraction]] | None:
    if text.startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            return None
        listed = listed if all(isinstance(row, list) for row in listed) else [listed]
        text = "\n".join(" ".join(map(str, row)) for row in listed)
    rows = [[_decimal(number) for number in line.split()] for line in text.splitlines()]
    known = [[number for number in row if number is not None] for row in rows]
    return known if rows and known == rows else None


def _complex(text: str) -> tuple[Fraction, Fraction] | None:
    real = imaginary = None
    position, text = 0, "".join(text.split())
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or (position and not match[1]) or not (match[2] or match[3]):
            return None
        value = Fraction(match[1] + (match[2] or "1"))
        if match[3] and imaginary is None:
            imaginary = value
        elif not match[3] and real is None:
            real = value
        else:
            return None
        position = match.end()
    return (real or Fraction(0), imaginary or Fraction(0)) if text else None


def _alike(read: Callable[[str], Any]) -> Callable[[str, str], bool]:
    """Equality of two answers as a function reads them; None equals nothing."""
    return lambda answer, gold: read(answer) == read(gold) is not None


EQUAL: Mapping[str, Callable[[str, str], bool]] = {
    # Rows of numbers, on separate lines or as lists in a list.
    **dict.fromkeys(("binary_matrix", "pool_matrix", "spiral_matrix"), _alike(_rows)),
    # 8.0 + 3.0i, 3i + 8, 8; the package pays nan.
    "complex_arithmetic": _alike(_complex),
    # A decimal to every requested digit; the package allows an error in the last one.
    **dict.fromkeys(("decimal_arithmetic", "number_format"), _alike(_decimal)),
    # 3/4, $3/4$, \frac{3}{4}, $\dfrac{3}{4}$; the package reads no further than the fraction.
    "fraction_simplification": _alike(_fraction),
    # True and False in any case; the package pays every text for both.
    "game_of_life_halting": _alike(str.casefold),
    # 28080, $28,080 and 28080.0; the package takes the first number of a text, without a sign.
    "gsm_symbolic": _alike(_whole),
    # Any case and white space, as in the package, which ignores words after the last.
    "letter_jumble": _alike(lambda text: text.casefold().split()),
    # The numbers in the order of the gold; the package pays [NaN, NaN] and rounded numbers.
    "number_sorting": _alike(_numbers),
    # The words between commas; the package does not count them.
    "word_sorting": _alike(lambda text: [word.strip() for word in text.split(",")]),
}
