r"""From a response to the few characters that are its answer. Never raises on text.

Looked for is what stands in \boxed{…} behind the thinking; without a box, the options decide. A
response may write its answer in several boxes and spellings: `spellings` gives all of them, each
of which has to be right, and `final_answer` the last one if they are plainly equal. Patterns are
linear in the text.
"""

from __future__ import annotations

import re

from rlvr_jax.verifiers.nesting import closing
from rlvr_jax.verifiers.notation import MAX_CHARACTERS, normalise
from rlvr_jax.verifiers.parsing import parse_answer
from rlvr_jax.verifiers.values import Rules

__all__ = ["agreed", "boxes", "final_answer", "spellings"]

_MAX_SPELLINGS = 4  # a response with more of them has not chosen, and each costs a comparison
_DIGITS = r"(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_SIGN = r"[-−–‐‑]?"  # all that `normalise` reads as minus, but the long dash
_BOX = re.compile(
    rf"\\(?:boxed|fbox)(?:\s*(?P<brace>\{{)|\s*(?P<bare>{_SIGN}{_DIGITS})(?![\w{{/^_!]|\s*\\[A-Za-z]))"
)
_PHRASE = re.compile(
    r"(?i:\b(?:answer|option|choice)\b(?:\s+is)?)\s*+:?\s*+\**+\s*+"
    r"(?:\(([A-Za-z])\)|([A-HJ-Z])(?![\w']))"
)
_LINE = re.compile(
    r"^[^\w\n]*(?:the\s+)?(?:final\s+)?answer[\s*]*+[:=](.*)$", re.IGNORECASE | re.MULTILINE
)
_FRACTION = r"\\[dt]?frac\s*(?:\{\s*-?\d+\s*\}\s*\{\s*-?\d+\s*\}|\d\s*\d)"
_NUMBER = re.compile(
    rf"(?:(?<![\w.]){_SIGN}(?:\d++\s*+)?)?{_FRACTION}|(?<![\w.]){_SIGN}{_DIGITS}(?:/\d+)?"
)


def boxes(text: str) -> list[str] | None:
    r"""Returns the contents of all outermost \boxed{…} and \fbox{…}; None if one is not closed.

    A number may do without braces, \boxed 5 and \boxed5.
    """
    found, position = [], 0
    while match := _BOX.search(text, position):
        position = match.end()
        if match["bare"]:
            found.append(match["bare"].rstrip(","))
            continue
        end = closing(text, match.end() - 1)
        if end < 0:
            return None
        found.append(text[match.end() : end].strip())
        position = end + 1
    return found


def spellings(
    response: str,
    *,
    choice: bool = False,
    answer_line: bool = False,
    last_number: bool = False,
    require_think: bool = False,
) -> list[str]:
    r"""Returns what a response gives as its answer, each spelling once; empty if it gives none.

    Looks behind the last </think>; thinking that does not end has no answer, as has an unclosed
    box. Empty boxes are an instruction repeated. Without a box the options decide.

    Args:
      choice: take the letter of the last phrase like "the answer is (A)".
      answer_line: take the rest of the last line that starts with "Answer:".
      last_number: take the last number; anything with a number in it then counts as an answer.
      require_think: a response without </think> has no answer.
    """
    _, think, answer = response.rpartition("</think>")
    if (require_think and not think) or "<think>" in answer:
        return []
    found = boxes(answer)
    if found is None:
        return []
    plain = {box if len(box) > MAX_CHARACTERS else normalise(box): box for box in found}
    plain.pop("", None)
    if plain:
        return list(plain.values()) if len(plain) <= _MAX_SPELLINGS else []
    if choice and (letters := _PHRASE.findall(answer)):
        return ["".join(letters[-1]).upper()]
    if answer_line and (lines := _LINE.findall(answer)):
        line = lines[-1].strip(" \t\r*")
        return [line] if line else []
    if last_number and (numbers := _NUMBER.findall(answer)):
        return [numbers[-1].rstrip(",")]
    return []


def final_answer(response: str, **options: bool) -> str | None:
    """Returns the answer of a response, with the options of `spellings`; None if it gives none.

    Several boxes have to agree, as a response that lists two answers has not chosen.
    """
    return agreed(spellings(response, **options))


def agreed(found: list[str]) -> str | None:
    """Returns the last of the spellings if all are equal, as far as no worker has to be asked."""
    if not found:
        return None
    values = [parse_answer(spelling, choice=False, grouped=True) for spelling in found]
    last = values[-1]
    same = [v and last and Rules().equal(v, last, lambda key: False) for v in values[:-1]]
    return found[-1] if all(same) else None
