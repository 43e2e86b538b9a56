"""Checks of instructions: whether a text follows one, by its name and arguments.

Each check is (text, *arguments) -> bool, pure and linear in the text; bad arguments raise. `words`
counts words, sentences and paragraphs. Keywords and forbidden words are whole words in any case. A
bullet is a line with * or -, a blank and some text; it may be indented.

Source: the constraints of IFEval, as VerIF and open-instruct train on them
(https://github.com/THU-KEG/VerIF, https://github.com/allenai/open-instruct); the rules are ours.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from rlvr_jax.verifiers.texts.words import (
    bare,
    bare_words,
    enclosed,
    holds,
    occurrences,
    paragraphs,
    sentences,
    words,
)

_COMMAS = ",，、،﹐﹑"  # look-alikes count
_BULLET = re.compile(r"^[^\S\n]*[*-][^\S\n]+\S", re.MULTILINE)
_HIGHLIGHT = re.compile(r"\*\*([^*\n]+)\*\*|\*([^*\s]+)\*")
_FENCED = re.compile(r"\s*```(?:json)?[^\S\n]*\n(.*)```\s*", re.DOTALL | re.IGNORECASE)
_SEPARATOR = "******"


def _first_word(text: str, word: str) -> bool:
    """Whether the text begins with a word, in any case."""
    return bare_words(text)[:1] == [bare(word)]


def _paragraph_first_word(text: str, number: int, word: str) -> bool:
    """Whether paragraph `number`, from 1, begins with a word."""
    parts = paragraphs(text)
    return 1 <= number <= len(parts) and _first_word(parts[int(number) - 1], word)


def _unique_words(text: str, relation: str | None = None, number: int = 0) -> bool:
    """Checks the number of different words; without arguments, that none occurs twice."""
    counted = bare_words(text)
    if relation is None:
        return len(set(counted)) == len(counted)
    return holds(len(set(counted)), relation, number)


def _letter_frequency(text: str, letter: str, relation: str, number: int) -> bool:
    """Whether a character occurs as often, in any case."""
    if len(letter) != 1:
        raise ValueError(f"letter_frequency: letter must be one character, got {letter!r}")
    return holds(text.casefold().count(letter.casefold()), relation, number)


def keyword_position(text: str, word: str, sentence: int, place: int) -> bool:
    """Whether a word is the place-th of the sentence-th sentence, both from 1.

    Args:
      text: the response.
      word: the keyword.
      sentence: number of the sentence, from 1.
      place: number of the word, from 1.
    """
    parts = sentences(text)
    if not 1 <= sentence <= len(parts):
        return False
    found = words(parts[int(sentence) - 1])
    return 1 <= place <= len(found) and bare(found[int(place) - 1]) == bare(word)


def _sections(text: str, header: str, number: int) -> bool:
    """Whether at least as many lines begin with a header and a number."""
    if not header.strip():
        raise ValueError("sections: header must have characters, got none")
    pattern = rf"^{re.escape(header.strip())}[^\S\n]*\d"
    return len(re.findall(pattern, text, re.MULTILINE)) >= number


def _is_json(text: str) -> bool:
    """Whether a text, less a fence around it, is an object or a list."""
    match = _FENCED.fullmatch(text)
    try:
        # JSON allows long integers, but not NaN.
        value = json.loads(match[1] if match else text, parse_int=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _two_responses(text: str) -> bool:
    """Whether there are two different answers with six stars between them."""
    parts = [part.strip() for part in text.split(_SEPARATOR)]
    return len(parts) == 2 and all(parts) and parts[0] != parts[1]


def _capital_words(text: str, relation: str, number: int) -> bool:
    """Whether as many words are in capitals."""
    found = [word for word in text.split() if any(map(str.isalpha, word)) and word == word.upper()]
    return holds(len(found), relation, number)


def _filled(text: str, opening: str, closing: str) -> int:
    """The number of pairs of marks with a letter or a digit between them."""
    return sum(bool(re.search(r"\w", content)) for content in enclosed(text, opening, closing))


def _list(texts: Sequence[str]) -> Sequence[str]:
    if isinstance(texts, str) or not texts:
        raise ValueError(f"instruction checks: a list of texts is required, got {texts!r}")
    return texts


def _refuse(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


CHECKS: Mapping[str, Callable[..., bool]] = {
    "all_capitals": lambda text: text == text.upper() and any(map(str.isalpha, text)),
    "all_lower": lambda text: text == text.lower() and any(map(str.isalpha, text)),
    "bullets": lambda text, number: holds(len(_BULLET.findall(text)), "exactly", number),
    "capital_words": _capital_words,
    "end_phrase": lambda text, phrase: text.rstrip().casefold().endswith(phrase.strip().casefold()),
    "first_word": _first_word,
    "forbidden": lambda text, unwanted: not any(occurrences(text, w) for w in _list(unwanted)),
    # Parts between stars.
    "highlights": lambda text, number: (
        sum(bool((bold or italic).strip()) for bold, italic in _HIGHLIGHT.findall(text)) >= number
    ),
    "json": _is_json,
    "keyword_frequency": lambda text, word, relation, number: holds(
        occurrences(text, word), relation, number
    ),
    "keyword_position": keyword_position,
    "keywords": lambda text, wanted: all(occurrences(text, word) for word in _list(wanted)),
    "last_word": lambda text, word: bare_words(text)[-1:] == [bare(word)],
    "letter_frequency": _letter_frequency,
    "no_comma": lambda text: not any(comma in text for comma in _COMMAS),
    "number_paragraphs": lambda text, relation, number: holds(
        len(paragraphs(text)), relation, number
    ),
    "number_sentences": lambda text, relation, number: holds(
        len(sentences(text)), relation, number
    ),
    "number_words": lambda text, relation, number: holds(len(words(text)), relation, number),
    # With a full stop or without.
    "one_of": lambda text, options: bool(
        {text.strip(), text.strip().removesuffix(".")} & {o.strip() for o in _list(options)}
    ),
    "paragraph_first_word": _paragraph_first_word,
    "placeholders": lambda text, number: _filled(text, "[", "]") >= number,
    "postscript": lambda text, marker: any(
        line.startswith(marker.strip()) for line in text.splitlines()
    ),
    # The whole text is between double quotation marks.
    "quoted": lambda text: (
        text.strip()[:1] == text.strip()[-1:] == '"' and bool(text.strip()[1:-1].strip())
    ),
    # The text repeats the prompt and goes on.
    "repeat_prompt": lambda text, prompt: (
        text.strip().startswith(prompt.strip()) and len(text.strip()) > len(prompt.strip())
    ),
    "sections": _sections,
    # Something is in double angle brackets.
    "title": lambda text: _filled(text, "<<", ">>") > 0,
    "two_responses": _two_responses,
    "unique_words": _unique_words,
}
