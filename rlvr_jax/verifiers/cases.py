"""Cases of the mathematics verifier in files, and the page "What the maths verifier accepts"."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlvr_jax.verifiers.nesting import closing

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

Made by `python -m rlvr_jax.verifiers.report {files} --markdown`."""


@dataclass(frozen=True)
class Case:
    """One line of a file.

    Fields:
      place: file and line.
      response, gold: the texts that are compared.
      verdict: grade in the file: 1, 0 or None.
      kind: of the case, the name of the file where the line has none.
      why: reason of the grade, "" without.
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
      ValueError: no file; a line that is not a case, which is named.
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
