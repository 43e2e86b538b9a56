"""Runs the mathematics verifier on files of cases.

    python -m rlvr_jax.verifiers.report FOLDER [--boxes joined] [--choice] [--show 5]

FOLDER holds `.jsonl` files. Each line has `input` (a response), `gold` and `verdict` (1, 0 or
null: ungraded). Optional fields are `kind`, the kind of the case, and `why`, which replaces a
missing `kind`. You may name several folders and files. The report counts agreements by kind and
shows the differences. A response without a box is read as the content of a box.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.maths import MathVerifier
from rlvr_jax.verifiers.maths.extract import BOXES


@dataclass(frozen=True)
class Case:
    """One line of a file.

    Fields:
      place: file and line.
      response, gold: the texts that are compared.
      verdict: grade in the file: 1, 0 or None.
      kind: kind of the case; the name of the file if the line has none.
      why: reason of the grade, "" without one.
    """

    place: str
    response: str
    gold: str
    verdict: int | None
    kind: str
    why: str = ""


def read_cases(folder: Path) -> list[Case]:
    """Reads all cases of a folder, or of one file.

    Raises:
      ValueError: there is no file, or a line is not a case.
    """
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]
    if not files or not files[0].is_file():
        raise ValueError(f"report: FOLDER must hold .jsonl files, got {str(folder)!r}")
    return [case for file in files for case in _cases(file)]


def _cases(file: Path) -> Iterator[Case]:
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        place = f"{file.name}:{number}"
        try:
            row: Any = json.loads(line)
            texts = row["input"], row["gold"]
            verdict = row["verdict"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"report: {place} must be an object with input, gold and verdict, got {line[:60]!r}"
                f" ({error})"
            ) from None
        if not all(isinstance(text, str) for text in texts) or verdict not in (0, 1, None):
            raise ValueError(
                f"report: {place} must have texts as input and gold, and 1, 0 or null as verdict,"
                f" got {line[:60]!r}"
            )
        response, gold = texts
        if "boxed" not in response and "fbox" not in response:
            response = f"\\boxed{{{response}}}"
        kind = str(row.get("kind") or row.get("why") or file.stem)
        why = str(row.get("why", "")) if row.get("kind") else ""
        yield Case(place, response, gold, None if verdict is None else int(verdict), kind, why)


def differences(
    cases: list[Case], verifier: MathVerifier
) -> tuple[dict[str, list[int]], list[tuple[Case, Grade]]]:
    """Grades all cases: agreements and cases by kind, and the differences."""
    grades = verifier.grade([case.gold for case in cases], [case.response for case in cases])
    counts: dict[str, list[int]] = {}
    differing = []
    for case, grade in zip(cases, grades, strict=True):
        agreed = grade.outcome == case.verdict
        count = counts.setdefault(case.kind, [0, 0])
        count[0] += agreed
        count[1] += 1
        if not agreed:
            differing.append((case, grade))
    return counts, differing


def main(arguments: list[str]) -> int:
    """Prints the report; returns the exit code, which is 1 if a grade differs."""
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.verifiers.report", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="folder with .jsonl files of cases"
    )
    parser.add_argument(
        "--boxes", choices=BOXES, default="each", help="boxes that count if a text has several"
    )
    parser.add_argument("--choice", action="store_true", help="golds are option letters")
    parser.add_argument(
        "--show", type=int, default=5, help="number of shown differences of each kind"
    )
    options = parser.parse_args(arguments)
    try:
        cases = [case for folder in options.folders for case in read_cases(folder)]
    except ValueError as error:
        print(error)
        return 2
    with MathVerifier(boxes=options.boxes, choice=options.choice) as verifier:
        counts, differing = differences(cases, verifier)
    for kind, (agreed, total) in sorted(counts.items()):
        print(f"{agreed:>6} / {total:<6} {kind}")
        for case, grade in [pair for pair in differing if pair[0].kind == kind][: options.show]:
            ours = "ungraded" if grade.outcome is None else int(grade.outcome)
            theirs = "ungraded" if case.verdict is None else case.verdict
            print(
                f"         {case.place}: gold {case.gold!r:.60}, read {grade.answer!r:.60}:"
                f" {ours} ({grade.stage}), there {theirs}"
            )
    right = sum(agreed for agreed, _ in counts.values())
    print(f"{right:>6} / {len(cases):<6} all")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
