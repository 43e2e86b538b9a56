"""Points of a rubric's items, read from a judge's replies, and rubrics that are rewritten.

The last non-empty line of a reply is an integer of up to six digits, from 0 to the item's maximum.
"Score:" or "Score =" before it, and "/ maximum" and a full stop after it, are allowed.

Source: https://github.com/minnesotanlp/mpo, where an unreadable item is 0.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvr_jax.verifiers.texts.words import last_line

_MOST_ITEMS, _MOST_WORDS = 20, 300

_WANTED = (
    f"Write a better rubric: at most {_MOST_ITEMS} items, one a line, each behind the most points"
    f' that it gives and a colon, as in "5: Is the thesis clear?".'
)
ANALYSE = "Where was the judge fooled, too lenient, or of no use?"
"""The end of a request about one sample."""

MERGE = "Rubrics:"
"""The first line of a request to make one rubric of several."""

_ITEM = re.compile(r"(?:[-*•]\s*)?([0-9]{1,6})\s*:\s*(\S.*)")

_SCORE = re.compile(
    r"(?:score\s*[:=]\s*)?([0-9]{1,6})\s*(?:/\s*([0-9]{1,6})\s*)?\.?", re.IGNORECASE
)


@dataclass(frozen=True)
class Item:
    """One item of a rubric: the question for the judge, and the most points."""

    text: str
    maximum: int

    @property
    def line(self) -> str:
        """The item as `read_items` reads it."""
        return f"{self.maximum}: {self.text}"


@dataclass(frozen=True)
class Rubric:
    """Items, and how often they were rewritten."""

    items: tuple[Item, ...]
    version: int = 0


@dataclass(frozen=True)
class Sample:
    """A judged response: its prompt, its text, and the judge's reply on each item."""

    prompt: str
    response: str
    words: tuple[str, ...]


def parse_score(text: str, maximum: int) -> int | None:
    """The points in a reply; None if it is unreadable."""
    found = _SCORE.fullmatch(last_line(text))
    if found is None or (found[2] is not None and int(found[2]) != maximum):
        return None
    points = int(found[1])
    return points if points <= maximum else None


def sum_of_points(scores: Sequence[int | None], maxima: Sequence[int]) -> int | None:
    """The published reward, in which an unreadable item is 0 and longer rubrics have larger sums;
    None if a reply is missing."""
    if len(scores) != len(maxima):
        return None
    return sum(score or 0 for score in scores)


def fraction_of_points(scores: Sequence[int | None], maxima: Sequence[int]) -> float | None:
    """Mean of score / maximum over the readable items; None without any, or if one is missing."""
    if len(scores) != len(maxima):
        return None
    fractions = [s / most for s, most in zip(scores, maxima, strict=True) if s is not None]
    return sum(fractions) / len(fractions) if fractions else None


def read_items(text: str) -> list[Item]:
    """The items of a reply, one per line after its most points, as in "5: Is the thesis clear?". A
    bullet before an item is removed; lines of another form are ignored."""
    found = [_ITEM.fullmatch(line.strip()) for line in text.splitlines()]
    return [Item(match[2].strip(), int(match[1])) for match in found if match]


def evolve(
    rubric: Rubric, samples: Sequence[Sample], meta: Callable[[Sequence[str]], Sequence[str]]
) -> tuple[Rubric, bool]:
    """Rewrites a rubric by a model from judged samples; returns it and whether it was rewritten.

    For each sample the model writes where the judge was fooled (analyse), and items that avoid this
    (refine). From all of them it makes one list (merge). If the list is not a valid rubric (see
    `rewritten`), the old rubric stays.

    Args:
      samples: samples of the last responses.
      meta: (requests) -> a reply to each, the model; "" for a request without a reply.
    Source: https://github.com/minnesotanlp/mpo, whose prompts are longer; the form of an item is
      ours.
    """
    items = "\n".join(item.line for item in rubric.items)
    contexts = []
    for sample in samples:
        scored = "\n".join(sample.words)
        contexts.append(
            f"Items of a rubric, each behind its most points:\n{items}\n\nPrompt:\n{sample.prompt}"
            f"\n\nResponse:\n{sample.response}\n\nWhat the judge said, item by item:\n{scored}"
        )
    found = meta([f"{context}\n\n{ANALYSE}" for context in contexts])
    refined = meta(
        [
            f"{context}\n\nWhat is wrong with it:\n{wrong}\n\n{_WANTED}"
            for context, wrong in zip(contexts, found, strict=True)
        ]
    )
    lists = "\n\n".join(refined)
    (merged,) = meta([f"{MERGE}\n{lists}\n\nMake one of them, no item twice. {_WANTED}"])
    new = rewritten(rubric, read_items(merged))
    return (rubric, False) if new is None else (new, True)


def rewritten(rubric: Rubric, items: Sequence[Item]) -> Rubric | None:
    """The next version of a rubric; None if the items are not valid. Valid are 1 to 20 items with a
    positive maximum and fewer than 300 words, all with different texts."""
    texts = [item.text.strip() for item in items]
    valid = 1 <= len(items) <= _MOST_ITEMS and len(set(texts)) == len(texts)
    valid = valid and all(0 < len(text.split()) < _MOST_WORDS for text in texts)
    valid = valid and all(item.maximum >= 1 for item in items)
    return Rubric(tuple(items), rubric.version + 1) if valid else None
