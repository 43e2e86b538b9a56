"""Runs the mathematics verifier on files of cases, or measures its speed.

    python -m rlvr_jax.verifiers.report FOLDER [--boxes joined] [--choice] [--show 5]
    python -m rlvr_jax.verifiers.report FOLDER --markdown
    python -m rlvr_jax.verifiers.report --speed

FOLDER holds `.jsonl` files whose lines have `input` (a response), `gold` and `verdict` (1, 0 or
null: ungraded), and, if you like, `kind` and `why` (the kind of the case where there is no
`kind`). Several folders and files may be named. The report counts agreements by kind and shows the
differences; with --markdown it is a page of examples by kind. A response without a box is read as a
box.
"""

import argparse
import sys
import time
from pathlib import Path

from rlvr_jax.verifiers.cases import Case, markdown, read_cases
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.maths import MathVerifier
from rlvr_jax.verifiers.maths.extract import BOXES


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


# A gold, a correct and an incorrect answer, # being another number each time.
_TIMED = {
    "integer": ("#234", "#,234", "#243"),
    "fraction": (r"\frac{#}{4}", r"\frac{2\cdot #}{8}", r"\frac{#}{5}"),
    "decimal": ("#.50", "#.5", "#.51"),
    "tuple": ("(#,2)", "(#.0, 2)", "(2,#)"),
    "interval": ("[0,#)", r"0 \le x < #", "[0,#]"),
    "set": (r"\{1,2,#\}", r"\{#,2,1\}", r"\{1,#\}"),
    "unit": ("# cm", r"# \text{ cm}", "# m"),
    "polynomial": ("x^2+2x+#", "(x+1)^2+#-1", "(x-1)^2+#"),
    "equation": ("y=2x+#", "2x-y+#=0", "y=x+#"),
    "radical": (r"#\sqrt{3}", r"\sqrt{3\cdot #^{2}}", r"\sqrt{#}"),
    "trigonometry": (r"\sin #x", r"\cos(#x-\frac{\pi}{2})", r"\cos #x"),
}
_ROUNDS = 200
_FIRST = 100  # so that all numbers are as long


def speed() -> dict[str, tuple[float, float, str]]:
    """Microseconds per grade of correct and incorrect answers, and the stage of the correct one.

    Answers are graded one by one, and none was seen before; a tenth of them are faster. "digits"
    includes the way to a worker and back.
    """
    found = {}
    with MathVerifier(workers=1) as verifier:
        verifier.grade([r"\sqrt{3}"], [r"\boxed{3^{1/2}}"])
        for name, (gold, right, wrong) in _TIMED.items():
            fastest, stage = [], ""
            for answer, first in ((wrong, _FIRST), (right, _FIRST + _ROUNDS)):
                times = []
                for number in range(first, first + _ROUNDS):
                    texts = [text.replace("#", str(number)) for text in (gold, answer)]
                    start = time.perf_counter()
                    (grade,) = verifier.grade([texts[0]], [f"\\boxed{{{texts[1]}}}"])
                    times.append(time.perf_counter() - start)
                    stage = grade.stage
                    if grade.outcome != (answer is right):
                        raise RuntimeError(f"report: {texts} must be graded correct, got {grade}")
                fastest.append(1e6 * sorted(times)[_ROUNDS // 10])
            found[name] = fastest[1], fastest[0], stage
    return found


def main(arguments: list[str]) -> int:
    """Prints the report; returns the exit code, 1 if something differs."""
    parser = argparse.ArgumentParser(
        prog="python -m rlvr_jax.verifiers.report", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="with .jsonl files of cases"
    )
    parser.add_argument("--markdown", action="store_true", help="a page of examples by kind")
    parser.add_argument("--speed", action="store_true", help="microseconds per grade by type")
    parser.add_argument("--boxes", choices=BOXES, default="each", help="how several boxes count")
    parser.add_argument("--choice", action="store_true", help="golds are option letters")
    parser.add_argument("--show", type=int, default=5, help="differences shown of each kind")
    options = parser.parse_args(arguments)
    if options.speed:
        print(f"{'type':14} {'correct':>9} {'incorrect':>9}  µs per grade; stage of the correct")
        for name, (right, wrong, stage) in speed().items():
            print(f"{name:14} {right:>9.0f} {wrong:>9.0f}  {stage}")
    if not options.folders:
        return 0 if options.speed else parser.error("FOLDER or --speed is needed")
    try:
        cases = [case for folder in options.folders for case in read_cases(folder)]
    except ValueError as error:
        print(error)
        return 2
    if options.markdown:
        print(markdown(cases, " ".join(map(Path.as_posix, options.folders))))
        return 0
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
