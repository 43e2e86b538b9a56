"""Files of JSON lines, as the commands read and write them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["read_lines", "run_command", "wanted", "write_lines"]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file.

    Raises:
      ValueError: no such file, or a line that is no JSON object; names it.
    """
    if not Path(path).is_file():
        raise ValueError(f"read_lines: path must be a file of JSON lines, got {path}")
    rows = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"read_lines: line {number} of {path} must be a JSON object")
        rows.append(row)
    return rows


def wanted(row: Mapping[str, Any], name: str, place: int, path: Path) -> Any:
    """A field of a row.

    Raises:
      ValueError: it is not there; names the row.
    """
    if name not in row:
        raise ValueError(
            f"row {place + 1} of {path} must have the field {name!r}, got {sorted(row)}"
        )
    return row[name]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes rows, a line each."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def run_command(main: Callable[[Sequence[str]], None]) -> None:
    """Runs a command on the process's arguments; what is wrong with them ends in a sentence."""
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(f"error: {error}")
