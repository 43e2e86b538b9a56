"""Cases of the mathematics verifier in files: a response, a gold and the verdict that is wanted."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """One line of a file.

    Fields:
      place: file and line.
      response, gold: what is compared.
      verdict: what the file says: 1, 0 or None.
      kind: of the case, the name of the file where the line does not say.
      why: reason of the verdict, "" without.
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
      ValueError: no file; a line that is no case, which is named.
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
