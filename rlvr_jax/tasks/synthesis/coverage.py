"""Responses that together have the most different n-grams."""

from collections.abc import Sequence


def ngrams(text: str, size: int) -> set[tuple[str, ...]]:
    """The different runs of `size` words of a text."""
    words = text.split()
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def most_new_ngrams(texts: Sequence[str], number: int, size: int = 4) -> list[int]:
    """Positions of texts, in the order in which each adds the most n-grams to the previous ones.

    Args:
      number: largest number of texts; it stops if no text adds any. Ties go to the first text.
    Source: Dr.SCI, exploration-expanding selection.
    """
    left = {place: ngrams(text, size) for place, text in enumerate(texts)}
    known: set[tuple[str, ...]] = set()
    chosen: list[int] = []
    while left and len(chosen) < number:
        best = max(left, key=lambda place: (len(left[place] - known), -place))
        new = left.pop(best) - known
        if not new:
            break
        known |= new
        chosen.append(best)
    return chosen
