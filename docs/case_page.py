"""The page "What the maths verifier accepts", made of case tables.

python docs/case_page.py tests/cases/maths_kinds.jsonl tests/cases/maths_neighbours.jsonl
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlvr_jax.verifiers.nesting import closing
from rlvr_jax.verifiers.report import Case, read_cases

_MOST = 8  # examples of a grade and a kind
_VERDICTS = {1: "accepted", 0: "refused", None: "ungraded"}
_LONGEST = 70  # characters of an answer or a gold; longer ones are not examples
_HEAD = """# What the maths verifier accepts

This page shows examples of the case tables by kind. The tests compare every case with the verifier.

- **accepted**: the answer is correct, reward 1.
- **refused**: the answer is incorrect, reward 0. Most of these are near misses.
- **ungraded**: the gold cannot be graded. The prompt has no reward, and the run counts it.

Answers are the content of `\\boxed{{…}}`. The tables hold {cases} cases of {kinds} kinds; the page
shows at most {most} of each verdict and kind. Your own cases, one JSON object a line with `input`,
`gold` and `verdict`, are compared by `python -m rlvr_jax.verifiers.report FOLDER`.

Made by `python docs/case_page.py {files}`."""


def markdown(cases: Sequence[Case], files: str) -> str:
    """Writes the page.

    Args:
      cases: in the order of their kinds.
      files: that the cases are of, as the command names them.
    """
    kinds: dict[str, list[Case]] = {}
    for case in cases:
        kinds.setdefault(case.kind, []).append(case)
    numbers = {"cases": f"{len(cases):,}", "kinds": len(kinds), "most": _MOST}
    head = _HEAD.format(files=files, **numbers)
    sections = [_section(kind, found) for kind, found in kinds.items()]
    return "\n\n".join([head, *sections])


def _section(kind: str, cases: Sequence[Case]) -> str:
    reasons = any(case.why for case in cases)
    head = "| | answer | gold |" + " reason |" * reasons
    lines = [f"## {kind[:1].upper()}{kind[1:]}", "", head, "|---|---|---|" + "---|" * reasons]
    for verdict, name in _VERDICTS.items():
        for case in _examples(cases, verdict):
            reason = f" {case.why} |" * reasons
            lines.append(f"| {name} | {_code(_answer(case))} | {_code(case.gold)} |{reason}")
    return "\n".join(lines)


def _examples(cases: Sequence[Case], verdict: int | None) -> Iterator[Case]:
    found = [case for case in cases if case.verdict == verdict and _is_short(case)]
    step = max(1, -(-len(found) // _MOST))  # from all of a long table
    yield from found[::step]


def _is_short(case: Case) -> bool:
    texts = _answer(case), case.gold
    return all(text.isprintable() and 0 < len(text) <= _LONGEST for text in texts)


def _answer(case: Case) -> str:
    """The content of the box, where the response is nothing else."""
    start = len("\\boxed")
    alone = case.response.startswith("\\boxed{") and (
        closing(case.response, start) == len(case.response) - 1
    )
    return (case.response[start + 1 : -1] if alone else "") or case.response


def _code(text: str) -> str:
    marks = "``" if "`" in text else "`"
    pad = " " if text[:1] in "` " or text[-1:] in "` " else ""
    return f"{marks}{pad}{text}{pad}{marks}".replace("|", "\\|")


if __name__ == "__main__":
    files = sys.argv[1:]
    print(markdown([case for file in files for case in read_cases(Path(file))], " ".join(files)))
