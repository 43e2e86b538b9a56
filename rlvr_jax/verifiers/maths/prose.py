"""Answers in words: times of day, option letters, named sets, and other words."""

import re

from rlvr_jax.verifiers.maths.formulas.names import ELEMENTARY
from rlvr_jax.verifiers.maths.regions import LINE, excluded
from rlvr_jax.verifiers.maths.values import Container, Parse, Region, Text
from rlvr_jax.verifiers.maths.words import singular

_TIME = re.compile(r"(2[0-3]|[01]?\d):([0-5]\d)(?::([0-5]\d))?\s*([AaPp]\.?\s*[Mm]\.?)?")
_HOUR = re.compile(r"(\d{1,2})\s*([AaPp]\.?\s*[Mm]\.?|o'clock)")
_ALL = re.compile(
    r"(?:all|the|any)?\s*(?:set of\s+)?(?:all\s+)?(?:the\s+)?reals?(?:\s+numbers?)?"
    r"(?:\s+(?:except|but|other than)(?:\s+for)?\s+(.*))?",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"(?:the\s+)?(?:empty|null)\s+set", re.IGNORECASE)
_PROSE = re.compile(r"[^\W_][\w\s.,'!?:;()/&%°-]*")


def read_time(text: str) -> Text | None:
    """A time of day, compared as text except for the dots of p.m."""
    if not (_TIME.fullmatch(text) or _HOUR.fullmatch(text)):
        return None
    return Text(re.sub(r"[.\s]", "", text).lower())


def read_named_set(text: str, parse: Parse) -> Region | Container | None:
    r"""\mathbb{R}, "all real numbers", "all real numbers except 2", "the empty set"."""
    if text == "\\mathbb{R}":
        return LINE
    if (match := _ALL.fullmatch(text)) and (match[1] or len(text.split()) > 1 or text == "reals"):
        if match[1] is None:
            return LINE
        value = parse(match[1])
        return excluded(value.items if isinstance(value, Container) else (value,))
    return Container("set", ()) if _EMPTY.fullmatch(text) else None


def option_letters(text: str) -> str:
    """The letters of options, in order: "C. 5", "(C) 5", "ACD", "A, C, D", "A and C"; else ""."""
    if match := re.fullmatch(r"\(?\s*([A-Za-z])\s*\)?[.:]?", text):
        return match[1].upper()
    if match := re.fullmatch(r"(?:\(\s*([A-Z])\s*\)|([A-Z])\s*[.:)])\s*(.+)", text, re.DOTALL):
        letter = match[1] or match[2]
        if not re.match(r"(?:,|and\b|or\b|\()", match[3]):
            return letter
    found = re.sub(r"\\?\band\b|[\s,;(){}&\\.]", "", text)
    if re.fullmatch(r"[A-Z]{2,10}", found) and len(set(found)) == len(found):
        return "".join(sorted(found))
    return ""


def read_text(text: str) -> Text | None:
    """Words: with a letter outside of ASCII, or with three letters or more; else None."""
    if not _PROSE.fullmatch(text) or text.count("(") != text.count(")"):
        return None
    words = re.findall(r"[^\W\d_]+", text)
    if re.fullmatch(r"\d+(?:st|nd|rd|th)|(?:[A-Za-z]\.)+[A-Za-z]", text):
        return Text(text)
    if text.casefold() != "no" and not any(
        not word.isascii()
        or (len(word) > 2 and word not in ELEMENTARY and not _is_name(word, text))
        for word in words
    ):
        return None
    if re.search(r"[A-Za-z]\(|\d[A-Za-z]+\d|/[a-z]\b", text):
        return None
    return _folded(text)


def read_prose(text: str) -> Text | None:
    """Letters, digits and plain punctuation that are not a formula: "5 ft 6 in"."""
    plain = _PROSE.fullmatch(text) and text.count("(") == text.count(")") and ":" not in text
    return _folded(text) if plain and re.search(r"(?<![^\W_])[^\W\d_]{2,}", text) else None


def _folded(text: str) -> Text:
    """Words in one case and in the singular; a letter and, as in "line AB", two capitals remain."""
    names = text != text.upper()

    def fold(match: re.Match) -> str:
        word = match[0]
        if len(word) == 1 or (len(word) == 2 and names and word.isupper()):
            return word
        return singular(word.casefold())

    folded = re.sub(r"[^\W\d_]+", fold, text)
    return Text(" ".join(re.sub(r"(?<=[^\W\d_])\.", "", folded).split()))


def _is_name(word: str, text: str) -> bool:
    """ABC may be a triangle and xyz a product; without more text they are formulas."""
    if word == text:
        return len(word) <= 5
    return len(word) <= 4 and (word.isupper() or not re.search("[aeiouyAEIOUY]", word))
