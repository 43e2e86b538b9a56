"""DeepMath's filters over a file of questions: contamination, difficulty, agreement of answers.

    python -m rlvr_jax.tasks.synthesis.deepmath raw.jsonl kept.jsonl --tests benchmarks.jsonl

Rows have `question` and `answers` (of independent solutions, null without an answer). Optional are
`answer` (the source's) and `ratings` (1 to 10). Test rows have `question` and optionally
`benchmark`. A row is stored if it passes every filter, in this order: not similar to a test
question; rated 5 or more (ratings below 1 are ignored); answers that agree. Stored rows have
`answer`, `difficulty` (null: not rated) and `names_answer` (the question states the answer, so a
person should inspect it). Dropped rows are counted by filter. Embeddings and judge are ours:
n-grams of characters, and of words.

Left out: models that rate and solve questions, or rewrite them in an answerable form, as no model
that ships can.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.tasks.synthesis.lines import (
    command,
    read_lines,
    run_command,
    wanted,
    wanted_list,
    write_lines,
)
from rlvr_jax.verifiers.maths.verifier import verify_math

__all__ = ["Contamination", "agreement", "contaminated_fraction", "decontaminate", "difficulty"]
__all__ += ["hashed_ngrams", "main", "names_answer", "same_words"]

Judge = Callable[[str, str], bool]
WIDTH = 1024
SIZE = 4
ALIKE = 0.5


class Contamination(NamedTuple):
    """The questions that stay, bool [n], and the test questions for which each one is dropped."""

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
    """Whether half of the runs of three words of two questions are common, for any numbers."""
    first, second = (_runs(text) for text in (one, two))
    return len(first & second) >= ALIKE * len(first | second)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+|[^\w\s]", re.sub(r"\d+(?:\.\d+)?", "0", text.lower()))
    return {tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))}


def decontaminate(
    questions: Sequence[str],
    tests: Sequence[str],
    embed: Callable[[Sequence[str]], np.ndarray] = hashed_ngrams,
    judge: Judge = same_words,
    k: int = 5,
    benchmarks: Sequence[str] | None = None,
) -> Contamination:
    """Drops questions that a judge considers a test question, or a paraphrase of one.

    The judge only sees the k nearest test questions of each question, by the cosine of their
    embeddings. It sees both orders; one yes is enough.

    Args:
      questions: texts to keep or drop.
      tests: texts of test questions.
      embed: (texts) -> rows of length 1.
      judge: (text, text) -> whether they are the same question, even with other numbers.
      k: number of neighbours.
      benchmarks: benchmark of each test question. Then k neighbours in each benchmark are compared,
        so that a large benchmark does not fill all places. None: k in total.
    Raises:
      ValueError: k is below 1, or there is not one benchmark per test question.
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


def contaminated_fraction(found: Contamination, tests: int) -> float:
    """Fraction of the test questions for which some question was dropped."""
    return len({test for hits in found.hits for test in hits}) / tests


Equal = Callable[[str, str], bool]


def equal_answers(one: str, two: str) -> bool:
    """Whether two answers are the same value, by the verifier of mathematics."""
    return bool(verify_math(one, f"\\boxed{{{two}}}").outcome)


def agreement(
    answers: Sequence[str | None], source: str | None = None, equal: Equal = equal_answers
) -> tuple[bool, str | None]:
    """Whether all answers, the source's included, exist and are equal in pairs; and the answer.

    Args:
      answers: answers of independent solutions; None for a solution without one.
      source: the answer that came with the question, if there is one; it is the result.
      equal: (answer, answer) -> whether they are equal.
    Returns:
      (keep, answer); the answer of a dropped row is None.
    Source: DeepMath-103K.
    """
    known = [*([] if source is None else [source]), *answers]
    if not answers or any(answer is None for answer in answers):
        return False, None
    pairs = ((a, b) for place, a in enumerate(known) for b in known[place + 1 :])
    return (True, known[0]) if all(equal(a, b) for a, b in pairs) else (False, None)


def difficulty(ratings: Sequence[float], least: float = 5.0) -> tuple[float, bool]:
    """The mean rating, and whether it is at least `least`.

    Raises:
      ValueError: no ratings.
    """
    if not len(ratings):
        raise ValueError("difficulty: ratings must be at least one number, got none")
    mean = sum(ratings) / len(ratings)
    return mean, mean >= least


def names_answer(question: str, answer: str) -> bool:
    """Whether a question states its answer, ignoring white space and case."""
    question, answer = (" ".join(text.lower().split()) for text in (question, answer))
    return bool(re.search(rf"(?<![\w.]){re.escape(answer)}(?![\w.]*\w)", question))


def passed(row: dict[str, Any], place: int, path: Path, least: float) -> tuple[str, dict[str, Any]]:
    """The filter that drops a row ("" if none does), and the row in its stored form.

    Args:
      row: of the input file.
      place: its number, from 0.
      path: the input file, for errors.
      least: smallest mean rating of the difficulty.
    """
    mean = None
    ratings = wanted_list(row, "ratings", place, path, (int, float)) if row.get("ratings") else []
    # A rating below the scale has no meaning: the question need not be easy.
    if known := [rating for rating in ratings if rating >= 1]:
        mean, hard = difficulty(known, least)
        if not hard:
            return "difficulty", row
    answers = wanted_list(row, "answers", place, path, (str, int, float, NoneType))
    source = wanted({"answer": None} | row, "answer", place, path, (str, int, float, NoneType))
    texts = [None if value is None else str(value) for value in (*answers, source)]
    keep, answer = agreement(texts[:-1], texts[-1])
    if not keep or answer is None:
        return "agreement", row
    fields = {"answer": answer, "difficulty": mean}
    return "", row | fields | {"names_answer": names_answer(row["question"], answer)}


def main(arguments: Sequence[str]) -> None:
    """Reads, filters, writes; prints the number of rows at each filter."""
    parser = command("deepmath", __doc__, "questions")
    parser.add_argument("--tests", type=Path, help="questions of benchmarks")
    parser.add_argument("--neighbours", type=int, default=5, help="of each benchmark")
    parser.add_argument("--least-difficulty", type=float, default=5.0)
    given = parser.parse_args(list(arguments))
    rows = read_lines(given.questions)
    tests = read_lines(given.tests) if given.tests else []
    asked = [wanted(row, "question", k, given.questions, str) for k, row in enumerate(rows)]
    names = [str(row.get("benchmark", "")) for row in tests]
    found = decontaminate(
        asked,
        [wanted(row, "question", k, given.tests, str) for k, row in enumerate(tests)],
        k=given.neighbours,
        benchmarks=names,
    )
    dropped, stored = Counter({"contamination": int((~found.keep).sum())}), []
    for place, row in enumerate(rows):
        if found.keep[place]:
            gate, row = passed(row, place, given.questions, given.least_difficulty)
            if gate:
                dropped[gate] += 1
            else:
                stored.append(row)
    write_lines(given.out, stored)
    print(f"{len(stored)} of {len(rows)} rows stored in {given.out}")
    for gate in ("contamination", "difficulty", "agreement"):
        print(f"  {dropped[gate]} dropped by {gate}")
    if tests:
        print(f"  {contaminated_fraction(found, len(tests)):.1%} of the test questions were in it")
    print(f"  {sum(row['names_answer'] for row in stored)} stored questions state their answer")


if __name__ == "__main__":
    run_command(main)
