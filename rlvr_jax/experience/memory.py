"""Insights that are kept across problems, and found again by their words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlvr_jax.types.hyperparameters import NonNegativeInt
from rlvr_jax.types.parts import check_each


@dataclass(frozen=True)
class Insights:
    """Texts by their number, which no other text ever gets; every change gives a new record.

    Keep insights in it and never solutions, where it is carried from train to held-out problems.

    Fields:
      texts: by number.
      next_id: of the next text.
    Source: Empirical-MCTS's memory (the rule of retrieval is ours).
    """

    texts: Mapping[int, str] = field(default_factory=dict)
    next_id: int = 0

    def add(self, text: str) -> tuple[Insights, int]:
        """With another text; its number."""
        texts = {**self.texts, self.next_id: text}
        return Insights(texts, self.next_id + 1), self.next_id

    def modify(self, number: int, text: str) -> Insights:
        """With another text under a number.

        Raises:
          KeyError: there is no such number.
        """
        self._check([number])
        return replace(self, texts={**self.texts, number: text})

    def merge(self, numbers: Sequence[int], text: str) -> Insights:
        """With one text in the place of several, under the smallest of their numbers.

        Raises:
          KeyError: there is no such number, or none is given.
        """
        self._check(numbers)
        kept = {n: old for n, old in self.texts.items() if n not in numbers}
        kept[min(numbers)] = text
        return replace(self, texts=dict(sorted(kept.items())))

    def delete(self, number: int) -> Insights:
        """Without a text.

        Raises:
          KeyError: there is no such number.
        """
        self._check([number])
        return replace(self, texts={n: old for n, old in self.texts.items() if n != number})

    def retrieve(self, query: str, most: int) -> list[int]:
        """The numbers of the texts that share most with a query, the closest first.

        By the Jaccard similarity of their lower-case words; ties: the lower number; without a word
        in common never.

        Args:
          most: numbers at most.
        Raises:
          ValueError: most below 0.
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
