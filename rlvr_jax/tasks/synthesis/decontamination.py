"""Questions that are like one of a benchmark: by nearest neighbours, and a judge of each pair."""

import re
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Contamination", "contaminated_share", "decontaminate", "hashed_ngrams", "same_words"]

Embed = Callable[[Sequence[str]], np.ndarray]
Judge = Callable[[str, str], bool]
WIDTH = 1024
SIZE = 4
ALIKE = 0.5


class Contamination(NamedTuple):
    """Which questions stay, bool [n], and for each the test questions that it was dropped for."""

    keep: np.ndarray
    hits: list[list[int]]


def hashed_ngrams(texts: Sequence[str]) -> np.ndarray:
    """Counts of hashed runs of four characters, scaled to length 1; [n, 1024]."""
    rows = np.zeros((len(texts), WIDTH))
    for row, text in zip(rows, texts, strict=True):
        folded = " ".join(text.lower().split())
        for start in range(max(1, len(folded) - SIZE + 1)):
            row[zlib.crc32(folded[start : start + SIZE].encode()) % WIDTH] += 1
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def same_words(one: str, two: str) -> bool:
    """Whether two questions share half of their runs of three words, numbers all alike."""
    first, second = (_runs(text) for text in (one, two))
    return len(first & second) >= ALIKE * len(first | second)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+|[^\w\s]", re.sub(r"\d+(?:\.\d+)?", "0", text.lower()))
    return {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))}


def decontaminate(
    questions: Sequence[str],
    tests: Sequence[str],
    embed: Embed = hashed_ngrams,
    judge: Judge = same_words,
    k: int = 5,
    benchmarks: Sequence[str] | None = None,
) -> Contamination:
    """Drops questions that a judge holds for a test question, or for a paraphrase of one.

    Only the k nearest test questions of each, by the cosine of their embeddings, are shown to the
    judge, in both orders; one yes is enough.

    Args:
      embed: (texts) -> rows of length 1.
      judge: (text, text) -> whether they are the same question, changed numbers included.
      k: neighbours.
      benchmarks: of each test question; k neighbours of each are asked then, so that a large one
        does not fill all places. None: k of all.
    Raises:
      ValueError: k below 1, or another number of benchmarks.
    Source: DeepMath-103K; the "or" of both orders is ours.
    """
    if k < 1:
        raise ValueError(f"decontaminate: k must be at least 1, got {k}")
    names = [""] * len(tests) if benchmarks is None else list(benchmarks)
    if len(names) != len(tests):
        raise ValueError(
            f"decontaminate: benchmarks must be {len(tests)}, one for each test, got {len(names)}"
        )
    hits: list[list[int]] = [[] for _ in questions]
    if questions and tests:
        likeness = embed(questions) @ embed(tests).T
        for name in dict.fromkeys(names):
            members = np.array([place for place, own in enumerate(names) if own == name])
            order = np.argsort(-likeness[:, members], axis=1, kind="stable")[:, :k]
            for question, near in enumerate(members[order]):
                for test in map(int, near):
                    first, second = questions[question], tests[test]
                    if judge(first, second) or judge(second, first):
                        hits[question].append(test)
    return Contamination(np.array([not found for found in hits], bool), hits)


def contaminated_share(found: Contamination, tests: int) -> float:
    """Share of the test questions that some question was dropped for, each counted once."""
    return len({test for hits in found.hits for test in hits}) / tests
