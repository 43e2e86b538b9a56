"""Puts every verifier to the cases of a folder: inputs, golds and verdicts as data.

    python tests/check_cases.py tests/cases
    python tests/check_cases.py tests/cases countdown enigmata

A slug is a file `<slug>.jsonl` of the folder, a case a line of it: `input`, `gold`, `verdict`,
`why`. Prints a line per slug and the lines that differ; slugs that nothing here reads are listed
apart. The exit code is 0 only if every case of every slug that is read (or named) agrees. The cases
of `verifier_libraries` need the extra `tasks`.
"""

import importlib
import json
import math
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest

SUPPORT = Path(__file__).parent / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))

import case_adapters  # noqa: E402

# Numbers of the tables are written with at most six digits.
TOLERANCE = 1e-6

SLUGS = sorted(module.name for module in pkgutil.iter_modules(case_adapters.__path__))


def rows(folder: Path, slug: str) -> list[dict[str, Any]]:
    """The cases of one slug."""
    lines = (folder / f"{slug}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def agrees(slug: str, row: dict[str, Any]) -> tuple[bool, Any]:
    """Whether the verifier says what the case says, and what it says.

    An adapter `case_adapters.<slug>` has `verdict(input, gold)`, which gives what the file calls
    the verdict, and `agree(got, wanted)` where equality up to `TOLERANCE` is not the rule.
    """
    adapter = importlib.import_module(f"case_adapters.{slug}")
    got = adapter.verdict(row["input"], row["gold"])
    agree = getattr(adapter, "agree", same)
    return agree(got, row["verdict"]), got


def same(got: Any, wanted: Any) -> bool:
    """Equal JSON values; numbers within `TOLERANCE`, the text "nan" for NaN."""
    if isinstance(wanted, dict):
        return (
            isinstance(got, dict)
            and got.keys() == wanted.keys()
            and all(same(got[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return (
            isinstance(got, list | tuple)
            and len(got) == len(wanted)
            and all(map(same, got, wanted))
        )
    if isinstance(got, float) and math.isnan(got):
        return wanted == "nan"
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (got, wanted))
    return abs(got - wanted) <= TOLERANCE if numbers else got == wanted


def main(arguments: list[str]) -> int:
    """Prints what agrees; returns the exit code."""
    if not arguments:
        print(__doc__)
        return 2
    folder, named = Path(arguments[0]), arguments[1:]
    present = sorted(path.stem for path in folder.glob("*.jsonl"))
    unknown = sorted(set(named) - set(present))
    if unknown or not present:
        print(f"{folder} has no cases of {', '.join(unknown) or 'any slug'}")
        return 2
    wrong = 0
    for slug in named or [slug for slug in present if slug in SLUGS]:
        if slug not in SLUGS:
            print(f"{slug:28} nothing reads it")
            wrong += 1
            continue
        try:
            importlib.import_module(f"case_adapters.{slug}")
        except pytest.skip.Exception as missing:
            print(f"{slug:28} not checked without its package: {missing}")
            wrong += 1
            continue
        cases = rows(folder, slug)
        differing = []
        for number, row in enumerate(cases, 1):
            agreed, got = agrees(slug, row)
            if not agreed:
                differing.append(
                    f"    line {number}: {got!r} for {row['verdict']!r} ({row['why']})"
                )
        print(f"{slug:28} {len(cases) - len(differing)} / {len(cases)}")
        print("\n".join(differing), end="\n" if differing else "")
        wrong += len(differing)
    left = [slug for slug in present if slug not in SLUGS]
    if left and not named:
        print(f"not read here: {', '.join(left)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
