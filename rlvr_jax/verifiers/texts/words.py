"""Words, sentences, paragraphs and lines of a text, by explicit rules.

Prompts and checks must count alike, and libraries differ. These rules are ours and need no word
list. Each function is linear in the text.
"""

import re
from collections.abc import Iterator

_STOP = re.compile(r"(?<![.!?])[.!?]++(?=\s|$)")
_EMPTY_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_FIRST = re.compile(r"\w")
_DECIMAL = re.compile(r"(?:score\s*:\s*)?([0-9]*\.?[0-9]+|[0-9]+\.)", re.IGNORECASE)


def words(text: str) -> list[str]:
    """Parts between white space that have a letter or a digit: "a - b" has two."""
    return [word for word in text.split() if any(map(str.isalnum, word))]


def sentences(text: str) -> list[str]:
    """Parts with a letter or digit between runs of . ! ? before white space or the end.

    A sentence includes its stop. Abbreviations are unknown: "Dr. No is here." has two sentences.
    """
    found, start = [], 0
    for stop in _STOP.finditer(text):
        found.append(text[start : stop.end()].strip())
        start = stop.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]


def paragraphs(text: str) -> list[str]:
    """Parts between empty lines that are not blank."""
    return [part.strip() for part in _EMPTY_LINES.split(text) if part.strip()]


def last_line(text: str) -> str:
    """The last line that is not empty, without blanks at its ends; "" for an empty text."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "")


def decimal_of(text: str, largest: float) -> float | None:
    """The decimal of the last line, after an optional "Score:"; None if there is none in
    [0, largest]."""
    found = _DECIMAL.fullmatch(last_line(text))
    if found is None:
        return None
    value = float(found[1])
    return value if value <= largest else None


def bare(word: str) -> str:
    """A word in one case, without the signs at its edges."""
    first, last = _FIRST.search(word), _FIRST.search(word[::-1])
    return word[first.start() : len(word) - last.start()].casefold() if first and last else ""


def bare_words(text: str) -> list[str]:
    """The words of a text without the signs at their edges, in one case."""
    return [bare(word) for word in words(text)]


def occurrences(text: str, phrase: str) -> int:
    """Number of times that a phrase occurs in a text as whole words, in any case."""
    if not phrase.strip():
        raise ValueError("occurrences: phrase must have characters, got none")
    pattern = rf"(?<!\w){re.escape(phrase.strip())}(?!\w)"
    return sum(1 for _ in re.finditer(pattern, text, re.IGNORECASE))


def enclosed(text: str, opening: str, closing: str) -> Iterator[str]:
    """The texts between two marks in one line, one after the other."""
    for line in text.splitlines():
        position = 0
        while (start := line.find(opening, position)) >= 0:
            start += len(opening)
            end = line.find(closing, start)
            if end < 0:
                break
            yield line[start:end]
            position = end + len(closing)


def holds(number: int, relation: str, bound: float) -> bool:
    """Whether a number is "at least", "at most", "less than", "more than" or "exactly" a bound.

    Raises:
      ValueError: the relation is unknown, or the bound is not a number.
    """
    if not isinstance(bound, int | float):
        raise ValueError(f"holds: bound must be a number, got {bound!r}")
    if relation not in _RELATIONS:
        raise ValueError(f"holds: relation must be one of {[*_RELATIONS]}, got {relation!r}")
    return _RELATIONS[relation](number, bound)


_RELATIONS = {
    "at least": lambda number, bound: number >= bound,
    "at most": lambda number, bound: number <= bound,
    "less than": lambda number, bound: number < bound,
    "more than": lambda number, bound: number > bound,
    "exactly": lambda number, bound: number == bound,
}
