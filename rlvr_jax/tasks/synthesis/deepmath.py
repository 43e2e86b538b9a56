"""DeepMath's gates over a file of questions: contamination, difficulty, agreement of answers.

    python -m rlvr_jax.tasks.synthesis.deepmath raw.jsonl kept.jsonl --tests benchmarks.jsonl

Rows have `question`, `answers` (of independent solutions, null where one gives none), and where
they are known `answer` (the source's) and `ratings` (1 to 10). Test rows have `question` and, if
they like, `benchmark`. A row is kept if it passes every gate, in this order: not like a test
question, rated 5 or more (by ratings of at least 1; others say nothing), answers that agree. Kept
rows have `answer`, `difficulty` (null: not rated) and `names_answer` (the question states it: look
at those). What was dropped is counted by its gate. Embeddings and judge are ours: n-grams of
characters, and of words.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from rlvr_jax.tasks.synthesis.agreement import agreement, difficulty, names_answer
from rlvr_jax.tasks.synthesis.decontamination import contaminated_share, decontaminate
from rlvr_jax.tasks.synthesis.lines import read_lines, run_command, wanted, wanted_list, write_lines


def passed(row: dict[str, Any], place: int, path: Path, least: float) -> tuple[str, dict[str, Any]]:
    """The gate at which a row is dropped, "" if at none, and the row as it is kept."""
    mean = None
    ratings = wanted_list(row, "ratings", place, path, (int, float)) if row.get("ratings") else []
    # Below the scale a rating says nothing, and not that the question is easy.
    if known := [rating for rating in ratings if rating >= 1]:
        mean, hard = difficulty(known, least)
        if not hard:
            return "difficulty", row
    answers = wanted_list(row, "answers", place, path, (str, int, float, NoneType))
    source = wanted({"answer": None} | row, "answer", place, path, (str, int, float, NoneType))
    texts = [None if told is None else str(told) for told in (*answers, source)]
    keep, answer = agreement(texts[:-1], texts[-1])
    if not keep or answer is None:
        return "agreement", row
    told = {"answer": answer, "difficulty": mean}
    return "", row | told | {"names_answer": names_answer(row["question"], answer)}


def main(arguments: Sequence[str]) -> None:
    """Reads, filters, writes; prints what became of the rows."""
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.tasks.synthesis.deepmath",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", type=Path)
    parser.add_argument("out", type=Path)
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
    dropped, kept = Counter({"contamination": int((~found.keep).sum())}), []
    for place, row in enumerate(rows):
        if found.keep[place]:
            gate, row = passed(row, place, given.questions, given.least_difficulty)
            if gate:
                dropped[gate] += 1
            else:
                kept.append(row)
    write_lines(given.out, kept)
    print(f"{len(kept)} of {len(rows)} rows kept in {given.out}")
    for gate in ("contamination", "difficulty", "agreement"):
        print(f"  {dropped[gate]} dropped by {gate}")
    if tests:
        print(f"  {contaminated_share(found, len(tests)):.1%} of the test questions were in it")
    print(f"  {sum(row['names_answer'] for row in kept)} kept questions state their answer")


if __name__ == "__main__":
    run_command(main)
