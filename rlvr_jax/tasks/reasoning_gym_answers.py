"""Equal answers to questions of reasoning-gym whose own scorers pay wrong ones as well.

Each function says whether an answer is the gold in another spelling. Both are text without white
space around it, and nothing beside the answer is allowed: it could be a second answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping

__all__ = ["EQUAL", "is_padded"]


def _whole_numbers(answer: str, gold: str) -> bool:
    """28080, $28,080 and 28080.0; the package takes the first number of a text, without a sign."""
    return _whole(answer) == _whole(gold) is not None


def _fractions(answer: str, gold: str) -> bool:
    r"""3/4, $3/4$, \frac{3}{4}, $\dfrac{3}{4}$; the package reads no further than the fraction."""
    return _fraction(answer) == _fraction(gold) is not None


def _number_lists(answer: str, gold: str) -> bool:
    """The numbers of the gold in its order; the package pays [NaN, NaN] and rounded numbers."""
    return _numbers(answer) == _numbers(gold) is not None


def _word_lists(answer: str, gold: str) -> bool:
    """The words between commas; the package does not count them."""
    return _words(answer) == _words(gold)


def _sentences(answer: str, gold: str) -> bool:
    """Any case and white space, as in the package, which does not look at words behind the last."""
    return answer.casefold().split() == gold.casefold().split()


EQUAL: Mapping[str, Callable[[str, str], bool]] = {
    "fraction_simplification": _fractions,
    "gsm_symbolic": _whole_numbers,
    "letter_jumble": _sentences,
    "number_sorting": _number_lists,
    "word_sorting": _word_lists,
}


def is_padded(answer: str, gold: str) -> bool:
    """Whether an answer has all words and numbers of the gold, side by side, and more of them.

    More is a second answer, or talk. The zeros of 7.0 are neither.
    """
    found, wanted = (re.findall(r"\w+", text.casefold()) for text in (answer, gold))
    if not wanted or len(found) <= len(wanted):
        return False
    if answer.startswith(gold) and re.fullmatch(r"\.0*", answer[len(gold) :]):
        return False
    return f" {' '.join(wanted)} " in f" {' '.join(found)} "


_WHOLE = re.compile(r"([-+]?)\$?(\d{1,3}(?:,\d{3})+|\d+)(?:\.0*)?", re.ASCII)
_FRACTION = re.compile(
    r"\$?\s*(?:(\d+)\s*/\s*(\d+)|\\d?frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\})\s*\$?"
)


def _whole(text: str) -> tuple[bool, str] | None:
    """Sign and digits; not as an int, which Python refuses to make of very many digits."""
    match = _WHOLE.fullmatch(text)
    digits = match and (match[2].replace(",", "").lstrip("0") or "0")
    return match and (match[1] == "-" and digits != "0", digits)


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


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]
