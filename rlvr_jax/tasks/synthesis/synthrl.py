"""SynthRL's rule over a file of rewrites: harder, with the answer of the seed still in reach.

    python -m rlvr_jax.tasks.synthesis.synthrl attempts.jsonl accepted.jsonl --low 4

Rows have `question`, `answer`, `seed_count` (right answers of a policy to the question) and
`attempts`, each with `question`, `count` (right answers to it, by the same answer) and `score` (of
a judge, of 10), in the order in which they were made. Written are the seeds with at least
`--seed-threshold` right answers, and of each the accepted rewrite of the lowest count, if there is
one, as {"question", "answer", "count", "of"}; `of` is the seed's question.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rlvr_jax.tasks.synthesis.evolution import evolve
from rlvr_jax.tasks.synthesis.lines import read_lines, run_command, wanted, write_lines


def main(arguments: Sequence[str]) -> None:
    """Reads, chooses, writes; prints counts."""
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.tasks.synthesis.synthrl",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("attempts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed-threshold", type=int, default=12)
    parser.add_argument("--low", type=int, default=4)
    parser.add_argument("--gap", type=int, default=1)
    parser.add_argument("--least-score", type=float, default=8.0)
    given = parser.parse_args(list(arguments))
    rows, made, seeds = read_lines(given.attempts), [], 0
    for place, row in enumerate(rows):
        kinds = {"question": str, "answer": object, "seed_count": int, "attempts": list}
        question, answer, count, tries = (
            wanted(row, name, place, given.attempts, kind) for name, kind in kinds.items()
        )
        if count < given.seed_threshold:
            continue
        seeds += 1
        made.append({"question": question, "answer": answer, "count": count, "of": None})
        counts = [wanted(attempt, "count", place, given.attempts, int) for attempt in tries]
        number = (int, float)
        scores = [wanted(attempt, "score", place, given.attempts, number) for attempt in tries]
        best = evolve(counts, scores, count, given.low, given.gap, given.least_score).best
        if best:
            text = wanted(tries[best - 1], "question", place, given.attempts, str)
            found = {"question": text, "answer": answer, "count": counts[best - 1], "of": question}
            made.append(found)
    write_lines(given.out, made)
    print(f"{seeds} of {len(rows)} seeds kept, {len(made) - seeds} rewrites, in {given.out}")


if __name__ == "__main__":
    run_command(main)
