"""Checks of instructions: a name and arguments, and whether a text does what they ask.

Each is (text, *arguments) -> bool, pure and linear in the text; bad arguments raise. How words,
sentences and paragraphs are counted says `words`. Keywords are whole words in any case, forbidden
words too; a bullet is a line that begins with * or -, a blank and something, indented or not.

Source: the constraints of IFEval, as VerIF and open-instruct train on them
(https://github.com/THU-KEG/VerIF, https://github.com/allenai/open-instruct); the rules are ours.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from rlvr_jax.verifiers.texts.words import (
    bare,
    enclosed,
    holds,
    occurrences,
    paragraphs,
    sentences,
    words,
)

__all__ = ["CHECKS"]

_COMMAS = ",，、،﹐﹑"  # look-alikes count
_BULLET = re.compile(r"^[^\S\n]*[*-][^\S\n]+\S", re.MULTILINE)
_HIGHLIGHT = re.compile(r"\*\*([^*\n]+)\*\*|\*([^*\s]+)\*")
_FENCED = re.compile(r"\s*```(?:json)?[^\S\n]*\n(.*)```\s*", re.DOTALL | re.IGNORECASE)
_SEPARATOR = "******"


def number_words(text: str, relation: str, number: int) -> bool:
    """Whether there are as many words."""
    return holds(len(words(text)), relation, number)


def number_sentences(text: str, relation: str, number: int) -> bool:
    """Whether there are as many sentences."""
    return holds(len(sentences(text)), relation, number)


def number_paragraphs(text: str, relation: str, number: int) -> bool:
    """Whether there are as many paragraphs."""
    return holds(len(paragraphs(text)), relation, number)


def paragraph_first_word(text: str, number: int, word: str) -> bool:
    """Whether paragraph `number`, from 1, begins with a word."""
    parts = paragraphs(text)
    return 1 <= number <= len(parts) and first_word(parts[int(number) - 1], word)


def first_word(text: str, word: str) -> bool:
    """Whether the text begins with a word, in any case."""
    return [bare(found) for found in words(text)[:1]] == [bare(word)]


def last_word(text: str, word: str) -> bool:
    """Whether the text ends with a word, in any case."""
    return [bare(found) for found in words(text)[-1:]] == [bare(word)]


def unique_words(text: str, relation: str | None = None, number: int = 0) -> bool:
    """How many different words there are; without arguments, that none stands twice."""
    counted = [bare(word) for word in words(text)]
    if relation is None:
        return len(set(counted)) == len(counted)
    return holds(len(set(counted)), relation, number)


def letter_frequency(text: str, letter: str, relation: str, number: int) -> bool:
    """Whether a character occurs as often, in any case."""
    if len(letter) != 1:
        raise ValueError(f"letter_frequency: letter must be one character, got {letter!r}")
    return holds(text.casefold().count(letter.casefold()), relation, number)


def keywords(text: str, wanted: Sequence[str]) -> bool:
    """Whether all words are there."""
    return all(occurrences(text, word) for word in _list(wanted))


def keyword_frequency(text: str, word: str, relation: str, number: int) -> bool:
    """Whether a word occurs as often."""
    return holds(occurrences(text, word), relation, number)


def keyword_position(text: str, word: str, sentence: int, place: int) -> bool:
    """Whether a word is the place-th of the sentence-th sentence, both from 1."""
    parts = sentences(text)
    if not 1 <= sentence <= len(parts):
        return False
    found = words(parts[int(sentence) - 1])
    return 1 <= place <= len(found) and bare(found[int(place) - 1]) == bare(word)


def forbidden(text: str, unwanted: Sequence[str]) -> bool:
    """Whether none of the words is there."""
    return not any(occurrences(text, word) for word in _list(unwanted))


def bullets(text: str, number: int) -> bool:
    """Whether exactly as many lines are bullets."""
    return holds(len(_BULLET.findall(text)), "exactly", number)


def highlights(text: str, number: int) -> bool:
    """Whether at least as many parts stand between stars."""
    found = [bold or italic for bold, italic in _HIGHLIGHT.findall(text)]
    return sum(bool(content.strip()) for content in found) >= number


def sections(text: str, header: str, number: int) -> bool:
    """Whether at least as many lines begin with a header and a number."""
    if not header.strip():
        raise ValueError("sections: header must have characters, got none")
    pattern = rf"^{re.escape(header.strip())}[^\S\n]*\d"
    return len(re.findall(pattern, text, re.MULTILINE)) >= number


def title(text: str) -> bool:
    """Whether something stands in double angle brackets."""
    return any(re.search(r"\w", content) for content in enclosed(text, "<<", ">>"))


def placeholders(text: str, number: int) -> bool:
    """Whether something stands in square brackets at least as often."""
    found = sum(bool(re.search(r"\w", content)) for content in enclosed(text, "[", "]"))
    return found >= number


def is_json(text: str) -> bool:
    """Whether a text, less a fence around it, is an object or a list."""
    match = _FENCED.fullmatch(text)
    try:
        # Long integers are no reason to refuse what JSON allows; NaN is one.
        value = json.loads(match[1] if match else text, parse_int=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def postscript(text: str, marker: str) -> bool:
    """Whether a line begins with a marker."""
    return any(line.startswith(marker.strip()) for line in text.splitlines())


def two_responses(text: str) -> bool:
    """Whether there are two different answers with six stars between them."""
    parts = [part.strip() for part in text.split(_SEPARATOR)]
    return len(parts) == 2 and all(parts) and parts[0] != parts[1]


def repeat_prompt(text: str, prompt: str) -> bool:
    """Whether the text repeats the prompt and goes on."""
    text, prompt = text.strip(), prompt.strip()
    return text.startswith(prompt) and len(text) > len(prompt)


def end_phrase(text: str, phrase: str) -> bool:
    """Whether the text ends with a phrase, in any case."""
    return text.rstrip().casefold().endswith(phrase.strip().casefold())


def quoted(text: str) -> bool:
    """Whether the whole text stands between double quotation marks."""
    text = text.strip()
    return text[:1] == text[-1:] == '"' and bool(text[1:-1].strip())


def no_comma(text: str) -> bool:
    """Whether there is no comma, nor what looks like one."""
    return not any(comma in text for comma in _COMMAS)


def one_of(text: str, options: Sequence[str]) -> bool:
    """Whether the text is one of the options, with a full stop or without."""
    text = text.strip()
    return bool({text, text.removesuffix(".")} & {option.strip() for option in _list(options)})


def all_capitals(text: str) -> bool:
    """Whether all letters are capitals, and there are some."""
    return text == text.upper() and any(map(str.isalpha, text))


def all_lower(text: str) -> bool:
    """Whether no letter is a capital, and there are some."""
    return text == text.lower() and any(map(str.isalpha, text))


def capital_words(text: str, relation: str, number: int) -> bool:
    """Whether as many words are in capitals."""
    found = [word for word in text.split() if any(map(str.isalpha, word)) and word == word.upper()]
    return holds(len(found), relation, number)


def _list(texts: Sequence[str]) -> Sequence[str]:
    if isinstance(texts, str) or not texts:
        raise ValueError(f"instruction checks: a list of texts is wanted, got {texts!r}")
    return texts


def _refuse(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


CHECKS: Mapping[str, Callable[..., bool]] = {
    "all_capitals": all_capitals,
    "all_lower": all_lower,
    "bullets": bullets,
    "capital_words": capital_words,
    "end_phrase": end_phrase,
    "first_word": first_word,
    "forbidden": forbidden,
    "highlights": highlights,
    "json": is_json,
    "keyword_frequency": keyword_frequency,
    "keyword_position": keyword_position,
    "keywords": keywords,
    "last_word": last_word,
    "letter_frequency": letter_frequency,
    "no_comma": no_comma,
    "number_paragraphs": number_paragraphs,
    "number_sentences": number_sentences,
    "number_words": number_words,
    "one_of": one_of,
    "paragraph_first_word": paragraph_first_word,
    "placeholders": placeholders,
    "postscript": postscript,
    "quoted": quoted,
    "repeat_prompt": repeat_prompt,
    "sections": sections,
    "title": title,
    "two_responses": two_responses,
    "unique_words": unique_words,
}
