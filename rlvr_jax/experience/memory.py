"""A memory of insights across problems, retrieved by the words of a query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlvr_jax.arguments import check_each
from rlvr_jax.types.hyperparameters import NonNegativeInt


@dataclass(frozen=True)
class Insights:
    """Texts by their unique number; every change returns a new record.

    If the record is used from train to held-out problems, store only insights, never solutions.

    Fields:
      texts: by number.
      next_id: number of the next text.
    Source: Empirical-MCTS's memory (the retrieval rule is ours).
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    next_id: int = 0

    def add(self, text: str) -> tuple[Insights, int]:
        """The record with another text, and its number."""
        texts = {**self.texts, self.next_id: text}
        return Insights(texts, self.next_id + 1), self.next_id

    def modify(self, number: int, text: str) -> Insights:
        """The record with another text under a number.

        Raises:
          KeyError: an unknown number.
        """
        self._check([number])
        return replace(self, texts={**self.texts, number: text})

    def merge(self, numbers: Sequence[int], text: str) -> Insights:
        """The record with one text instead of several, under the smallest of their numbers.

        Raises:
          KeyError: an unknown number, or none.
        """
        self._check(numbers)
        remaining = {n: old for n, old in self.texts.items() if n not in numbers}
        remaining[min(numbers)] = text
        return replace(self, texts=dict(sorted(remaining.items())))

    def delete(self, number: int) -> Insights:
        """The record without a text.

        Raises:
          KeyError: an unknown number.
        """
        self._check([number])
        return replace(self, texts={n: old for n, old in self.texts.items() if n != number})

    def retrieve(self, query: str, most: int) -> list[int]:
        """Numbers of the texts that share words with a query, the most similar first.

        Similarity is the Jaccard index of the lower-case words. Ties go to the lower number.

        Raises:
          ValueError: most (the largest number of texts) is negative.
        """
        check_each(NonNegativeInt, "retrieve", most=most)
        wanted = _words(query)
        found = []
        for number, text in self.texts.items():
            own = _words(text)
            likeness = len(own & wanted) / max(len(own | wanted), 1)
            if likeness > 0:
                found.append((-likeness, number))
        return [number for _, number in sorted(found)[:most]]

    def _check(self, numbers: Sequence[int]) -> None:
        unknown = [number for number in numbers if number not in self.texts]
        if unknown or not numbers:
            raise KeyError(
                f"Insights: numbers must be among {sorted(self.texts)}, got {list(numbers)}"
            )


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
