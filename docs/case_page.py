"""Writes the page of answers that the maths verifier accepts and refuses, from case tables.

python docs/case_page.py tests/cases/maths_kinds.jsonl tests/cases/maths_neighbours.jsonl
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rlvr_jax.verifiers.nesting import closing
from rlvr_jax.verifiers.report import Case, read_cases

_MOST = 8  # examples of a grade and a kind
_VERDICTS = {1: "accepted", 0: "refused", None: "ungraded"}
_LONGEST = 70  # characters of an answer or a gold; longer ones are not examples
_IN_A_LINE = 4  # kinds in a line of the contents
_HEAD = """# Maths verifier: accepted and refused answers

This page shows how the maths verifier grades answers, by kind of answer. In Python:

    from rlvr_jax.verifiers import verify_math
    verify_math(gold="0.5", response=r"So \\boxed{{1/2}}.").outcome    # 1.0

Compare the verifier with your own cases, one JSON object a line with `input`, `gold` and `verdict`:

    python -m rlvr_jax.verifiers.report FOLDER

- **accepted**: the answer is correct, reward 1.
- **refused**: the answer is incorrect, reward 0. Most of these are near misses.
- **ungraded**: the gold cannot be graded. The prompt has no reward, and the run counts it.

An answer is the content of `\\boxed{{…}}`. The tables have {cases} cases of {kinds} kinds.
The tests compare every case with the verifier. The page shows at most {most} of each verdict and
kind.

Made by `python docs/case_page.py {files}`.

{contents}"""


def markdown(cases: Sequence[Case], files: str) -> str:
    """Writes the page.

    Args:
      cases: in the order of their kinds.
      files: of the cases, as the command names them.
    """
    kinds: dict[str, list[Case]] = {}
    for case in cases:
        kinds.setdefault(case.kind, []).append(case)
    numbers = {"cases": f"{len(cases):,}", "kinds": len(kinds), "most": _MOST}
    head = _HEAD.format(files=files, contents=_contents(kinds), **numbers)
    sections = [_section(kind, found) for kind, found in kinds.items()]
    return "\n\n".join([head, *sections])


def _contents(kinds: Iterable[str]) -> str:
    links = [
        f"[{_title(kind)}](#{re.sub('[^a-z0-9 -]', '', kind).replace(' ', '-')})" for kind in kinds
    ]
    lines = [links[n : n + _IN_A_LINE] for n in range(0, len(links), _IN_A_LINE)]
    return "\n".join(f"- {', '.join(line)}" for line in lines)


def _title(kind: str) -> str:
    return f"{kind[:1].upper()}{kind[1:]}"


def _section(kind: str, cases: Sequence[Case]) -> str:
    reasons = any(case.why for case in cases)
    head = "| | answer | gold |" + " reason |" * reasons
    lines = [f"## {_title(kind)}", "", head, "|---|---|---|" + "---|" * reasons]
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
