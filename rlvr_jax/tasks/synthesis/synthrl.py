"""SynthRL's rule over a file of rewrites: harder questions with the same answer.

    python -m rlvr_jax.tasks.synthesis.synthrl attempts.jsonl accepted.jsonl --low 4

Rows have `question`, `answer`, `seed_count` (number of a policy's correct answers to the question)
and `attempts` in order. An attempt has `question`, `count` (correct answers to it, by the same
answer) and `score` (of a judge, up to 10). The command writes the seeds with at least
`--seed-threshold` correct answers. For each seed it also writes the accepted rewrite of the lowest
count, if any, as {"question", "answer", "count", "of"}; `of` is the seed's question.

Left out: the models that rewrite and judge questions, as no model that ships can; the responses
that are counted.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rlvr_jax.tasks.synthesis.lines import command, read_lines, run_command, wanted, write_lines


class Evolution(NamedTuple):
    """For attempts 1, 2, …: the last accepted attempt before each (0: the seed); the accepted ones;
    and the first accepted one of the lowest count (0: none)."""

    parent: list[int]
    accepted: list[int]
    best: int


def evolve(
    counts: Sequence[int],
    scores: Sequence[float],
    seed_count: int,
    low: int = 4,
    gap: int = 1,
    least_score: float = 8.0,
) -> Evolution:
    """Accepts attempts at rewriting that have a good score and low ≤ count < seed count - gap.

    Args:
      counts: correct answers of a fixed policy to each attempt, by the answer of the seed.
      scores: scores of a judge.
      seed_count: correct answers to the seed, used in every test.
      low: smallest count, so that the answer is still reachable.
      gap: smallest difference of counts by which a rewrite must be harder.
      least_score: smallest good score.
    Raises:
      ValueError: there is not one score per count.
    Source: SynthRL, https://github.com/NUS-TRAIL/SynthRL.
    """
    if len(counts) != len(scores):
        raise ValueError(
            f"evolve: counts and scores must be equally many, got {len(counts)} and {len(scores)}"
        )
    parent, accepted, last = [], [], 0
    for attempt, (count, score) in enumerate(zip(counts, scores, strict=True), start=1):
        parent.append(last)
        if score >= least_score and low <= count < seed_count - gap:
            accepted.append(attempt)
            last = attempt
    best = min(accepted, key=lambda attempt: (counts[attempt - 1], attempt), default=0)
    return Evolution(parent, accepted, best)


def main(arguments: Sequence[str]) -> None:
    """Reads, chooses, writes; prints counts."""
    parser = command("synthrl", __doc__, "attempts")
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
    print(f"{seeds} of {len(rows)} seeds and {len(made) - seeds} rewrites stored in {given.out}")


if __name__ == "__main__":
    run_command(main)
