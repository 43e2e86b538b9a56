"""rStar-Coder's mutual verification over a file of problems: programs label the inputs.

    python -m rlvr_jax.tasks.synthesis.rstar_coder problems.jsonl labelled.jsonl --theta 0.6

Rows have `programs` (Python that reads standard input), `inputs` (texts), and optionally the
statement's `examples`, pairs of [input, output], which are run first. Programs run in the sandbox,
each input twice. An error, the time limit, or two runs that differ have no output. Rows whose
programs agree are written with `inputs`, `labels`, `fraction`, `theta` and `solutions`: the
programs of the largest class, which are verified only against their own labels. The limit of a run
is two seconds of CPU time; it is part of the label's meaning.

With `--tests benchmarks.jsonl`, the rows of both files have `question`. A problem that has a run of
16 words in common with a test question is dropped before its programs run.

Left out: models that write problems, programs and inputs, as no model that ships can.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_jax.tasks.synthesis.coverage import ngrams
from rlvr_jax.tasks.synthesis.lines import (
    command,
    read_lines,
    run_command,
    wanted,
    wanted_list,
    write_lines,
)
from rlvr_jax.verifiers.programs.python.functions import run_programs

CONTAMINATED = 16
"""Words of a run that a problem must not have in common with a test question."""


class Agreement(NamedTuple):
    """The agreement of programs.

    Fields:
      accepted: whether the labels may be used.
      fraction: fraction of the programs in the largest class.
      labels: outputs of that class on the inputs; none if not accepted.
      members: the programs of that class; none if not accepted.
      reason: why it was not accepted: "fraction", "tie", "constant", "examples", or "".
    """

    accepted: bool
    fraction: float
    labels: list[Any]
    members: list[int]
    reason: str = ""


def mutual_verify(
    outputs: Sequence[Sequence[Any]],
    theta: float,
    examples: Mapping[int, Any] | None = None,
    constant_examples: bool = False,
) -> Agreement:
    """Labels inputs by the largest class of programs whose outputs are all equal.

    An output of None (an error, a time-out, a long output, or two runs that differ) equals nothing:
    its program is in no class, but counts in N. Labels of ⌈θ N⌉ programs are accepted with three
    exceptions: two classes are the largest; all labels are equal and the statement's examples are
    not; the labels contradict an example.

    Args:
      outputs: output of each program on each input, hashable.
      theta: fraction of all programs, in (0, 1].
      examples: outputs in the statement, by the number of the input.
      constant_examples: whether the statement's examples all have one output.
    Raises:
      ValueError: no programs or inputs, rows of different lengths, theta outside (0, 1].
    Source: rStar-Coder; the treatment of ties, constants and examples is ours.
    """
    if not outputs or not outputs[0] or len({len(row) for row in outputs}) != 1:
        raise ValueError(
            "mutual_verify: outputs must be rows of one length, at least one, got lengths"
            f" {[len(row) for row in outputs]}"
        )
    if not 0 < theta <= 1:
        raise ValueError(f"mutual_verify: theta must be in (0, 1], got {theta}")
    classes = Counter(tuple(row) for row in outputs if None not in row)
    if not classes:
        return Agreement(False, 0.0, [], [], "fraction")
    (labels, size), *others = classes.most_common(2)
    fraction = size / len(outputs)
    reason = ""
    if size < math.ceil(theta * len(outputs) - 1e-9):  # 10 of 16 at 0.6
        reason = "fraction"
    elif others and others[0][1] == size:
        reason = "tie"
    elif len(set(labels)) == 1 and len(labels) > 1 and not constant_examples:
        reason = "constant"
    elif any(labels[place] != wanted for place, wanted in (examples or {}).items()):
        reason = "examples"
    if reason:
        return Agreement(False, fraction, [], [], reason)
    members = [place for place, row in enumerate(outputs) if tuple(row) == labels]
    return Agreement(True, fraction, list(labels), members)


def labelled(row: dict[str, Any], place: int, path: Path, theta: float) -> Agreement:
    """The agreement of a row's programs, on its examples and then its inputs.

    Args:
      row: of the input file.
      place: its number, from 0.
      path: the input file, for errors.
      theta: fraction of the programs that must agree.
    """
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


def _word_runs(row: dict[str, Any], place: int, path: Path) -> set[tuple[str, ...]]:
    """The runs of 16 words of a row's question, in any case."""
    return ngrams(wanted(row, "question", place, path, str).lower(), CONTAMINATED)


def _normal(text: str) -> str:
    """An output in the form that is compared: lines of tokens, without empty lines at the end."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def main(arguments: Sequence[str]) -> None:
    """Reads, runs, writes; prints the number of problems by result."""
    parser = command("rstar_coder", __doc__, "problems")
    parser.add_argument("--theta", type=float, default=0.6)
    parser.add_argument("--tests", type=Path, help="questions of benchmarks")
    given = parser.parse_args(list(arguments))
    rows, stored, reasons = read_lines(given.problems), [], Counter()
    known: set[tuple[str, ...]] = set()
    for place, row in enumerate(read_lines(given.tests) if given.tests else []):
        known |= _word_runs(row, place, given.tests)
    for place, row in enumerate(rows):
        if known and known & _word_runs(row, place, given.problems):
            reasons["contamination"] += 1
            continue
        found = labelled(row, place, given.problems, given.theta)
        if not found.accepted:
            reasons[found.reason] += 1
            continue
        first = len(row.get("examples", []))
        fields = {"labels": found.labels[first:], "fraction": found.fraction, "theta": given.theta}
        solutions = [row["programs"][member] for member in found.members]
        stored.append({k: v for k, v in row.items() if k != "programs"} | fields)
        stored[-1]["solutions"] = solutions
    write_lines(given.out, stored)
    print(f"{len(stored)} of {len(rows)} problems labelled in {given.out}")
    for reason, number in sorted(reasons.items()):
        print(f"  {number} dropped: {reason}")


if __name__ == "__main__":
    run_command(main)
