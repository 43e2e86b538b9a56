"""Equalities and inequalities of numbers in a text, such as 12*3 = 36, decided exactly.

Relations are searched in the longest runs of digits, stops, blanks, operators, brackets and
relation signs. A run with a relation sign must be `expr REL expr …` as a whole. It cannot be read
if its neighbour may belong to it: a word that touches it, a name of one letter, an operator after
a word, a command. So may a word such as "times", a mathematical sign, or the rest of a number such
as 1,000. A relation that is decided as false is false; this leaves other relations unread.
"""

import itertools
import operator
import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from rlvr_jax.verifiers.exact import DECIMALS, evaluate, plain_signs, tokens

# Characters of a text; a longer one is not read.
_MAX_TEXT = 10_000
# Characters of one side of a relation.
_MAX_CHARACTERS = 200

_RELATIONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_PLAIN = str.maketrans({"≤": "<=", "≥": ">=", "≠": "!=", "–": "-", "\u00a0": " ", "\u202f": " "})
_RUN = re.compile(r"(?:[0-9. \t+\-*/^()=<>]|!=)+")
_TELLING = re.compile(r"[0-9=<>]")
_SIGN = re.compile(r"(<=|>=|!=|=|<|>)")
# A word, with the backslash of a command. The one before a run is looked for in a part of the text.
_BEFORE = re.compile(r"\\?[^\W\d_]+(?:['’][^\W\d_]+)*$")
_AFTER = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LONGEST_WORD = 30
# Words of one letter that are not names of numbers.
_ARTICLES = frozenset({"a", "I"})
_OPERATIONS = frozenset(
    {
        *("plus", "minus", "times", "over", "divided", "multiplied", "squared", "cubed"),
        *("percent", "mod", "modulo", "hundred", "thousand", "million", "billion"),
    }
)
_BESIDE = frozenset("\\{}_%!")
# Signs of mathematics that separate runs.
_PARTING = frozenset("|→⇒⟹⇔↔∴∵")
_OTHER_NUMBERS = ("Nd", "Nl", "No", "Sm")  # categories of Unicode: ٣, Ⅳ, ², √
# Between two runs, one of which is not a relation, they join them: 3:2, 1,000, 3 and 4.
_MARKS = (",", ":")
_JOINING = ("and", "to")


def decide(text: str) -> list[bool | None]:
    """Whether each run of relations holds; None if it cannot be read or has no value."""
    if len(text) > _MAX_TEXT:
        return [None]
    text = plain_signs(text).translate(_PLAIN).replace("**", "^")
    runs = [run.span() for run in _RUN.finditer(text) if _TELLING.search(run.group())]
    related = [_SIGN.search(text, *run) is not None for run in runs]
    found: list[bool | None] = []
    for number, run in enumerate(runs):
        if related[number]:
            others = [n for n in (number - 1, number + 1) if 0 <= n < len(runs) and not related[n]]
            joined = any(_joined(text, *sorted((run, runs[n]))) for n in others)
            unread = joined or _entangled(text, *run)
            found.append(None if unread else _holds(_trimmed(text[slice(*run)])))
    return found


def _holds(run: str) -> bool | None:
    parts = _SIGN.split(run)
    values = [_value(side) for side in parts[::2]]
    if None in values:
        return None
    pairs = itertools.pairwise(values)
    return all(_RELATIONS[sign](a, b) for sign, (a, b) in zip(parts[1::2], pairs, strict=True))


def _value(side: str) -> Fraction | None:
    words = tokens(side, DECIMALS) if len(side) <= _MAX_CHARACTERS else None
    return None if words is None else evaluate(words, signs=True)


def _trimmed(run: str) -> str:
    """A run without stops and blanks at its ends, except a stop before a digit."""
    inner = run.strip(". \t")
    before = run[: run.find(inner)]
    number = before.endswith(".") and not before.endswith("..") and inner[0].isdecimal()
    return f".{inner}" if number else inner


def _joined(text: str, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether the text between two runs makes one of them."""
    between = text[first[1] : second[0]]
    ends = text[first[1] - 1], text[second[0]]
    return between in _JOINING or (between in _MARKS and all(map(str.isdecimal, ends)))


def _entangled(text: str, start: int, end: int) -> bool:
    """Whether the neighbours of a run may belong to it."""
    before = _BEFORE.search(text[max(start - _LONGEST_WORD, 0) : start])
    after = _AFTER.match(text, end)
    if before and (before[0] in ("of", "by") or text[start:end].lstrip(" \t")[:1] in {*"+-*/^"}):
        return True
    for word, inward in ((before, start), (after, end - 1)):
        if word is not None and (
            text[inward] not in " \t"
            or word[0][0] == "\\"
            or word[0] in _OPERATIONS
            or (len(word[0]) == 1 and word[0] not in _ARTICLES)
        ):
            return True
    beside = {text[start - 1] if start else "\n", text[end] if end < len(text) else "\n"}
    return any(
        mark in _BESIDE or unicodedata.category(mark) in _OTHER_NUMBERS
        for mark in beside - _PARTING
    )
