"""rStar-Coder's mutual verification over a file of problems: programs label the inputs.

    python -m rlvr_jax.tasks.synthesis.rstar_coder problems.jsonl labelled.jsonl --theta 0.6

Rows have `programs` (Python that reads standard input) and `inputs` (texts), and where the
statement gives some `examples`, pairs of [input, output], which are run first. Programs run in the
sandbox, each input twice; an error, the time limit, or two runs that differ are no output. Rows
whose programs agree are written with `inputs`, `labels`, `share`, `theta` and `solutions`, the
programs of the largest class, which are verified against their own labels alone. Two seconds of CPU
time are the limit of a run: it is part of what a label says.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr_jax.tasks.synthesis.lines import read_lines, run_command, wanted_list, write_lines
from rlvr_jax.tasks.synthesis.mutual import Agreement, mutual_verify
from rlvr_jax.verifiers.programs.functions import run_programs


def labelled(row: dict[str, Any], place: int, path: Path, theta: float) -> Agreement:
    """What the programs of a row agree on, on its examples and then its inputs."""
    programs = wanted_list(row, "programs", place, path, str)
    examples = wanted_list({"examples": []} | row, "examples", place, path, list)
    for pair in examples:
        if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise ValueError(
                f"row {place + 1} of {path}: 'examples' must be pairs of texts, got {pair!r}"
            )
    inputs = [text for text, _ in examples] + wanted_list(row, "inputs", place, path, str)
    normal = [_normal(output) for _, output in examples]
    outputs = [
        [None if text is None else _normal(text) for text in texts]
        for texts in run_programs(programs, inputs)
    ]
    return mutual_verify(
        outputs,
        theta,
        examples=dict(enumerate(normal)),
        constant_examples=len(normal) > 1 and len(set(normal)) == 1,
    )


def _normal(text: str) -> str:
    """An output as it is compared: lines of tokens, without empty lines at the end."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def main(arguments: Sequence[str]) -> None:
    """Reads, runs, writes; prints what became of the problems."""
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.tasks.synthesis.rstar_coder",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("problems", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--theta", type=float, default=0.6)
    given = parser.parse_args(list(arguments))
    rows, kept, reasons = read_lines(given.problems), [], Counter()
    for place, row in enumerate(rows):
        found = labelled(row, place, given.problems, given.theta)
        if not found.accepted:
            reasons[found.reason] += 1
            continue
        first = len(row.get("examples", []))
        told = {"labels": found.labels[first:], "share": found.share, "theta": given.theta}
        solutions = [row["programs"][member] for member in found.members]
        kept.append({k: v for k, v in row.items() if k != "programs"} | told)
        kept[-1]["solutions"] = solutions
    write_lines(given.out, kept)
    print(f"{len(kept)} of {len(rows)} problems labelled in {given.out}")
    for reason, number in sorted(reasons.items()):
        print(f"  {number} dropped: {reason}")


if __name__ == "__main__":
    run_command(main)
