"""Files of JSON lines, as tasks and commands read and write them."""

import argparse
import gzip
import importlib.util
import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

_NAMES = {
    **{str: "a text", list: "a list", int: "a whole number", float: "a number"},
    NoneType: "null",
}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file.

    Raises:
      ValueError: there is no such file, or a line is not a JSON object; names it.
    """
    if not Path(path).is_file():
        raise ValueError(f"read_lines: path must be a file of JSON lines, got {path}")
    content = Path(path).read_bytes()
    text = (gzip.decompress(content) if Path(path).suffix == ".gz" else content).decode("utf-8")
    rows = []
    # Texts may contain other line separators, which JSON need not escape.
    for number, line in enumerate(text.split("\n"), start=1):
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


def rows_in_package(module: str, file: str, fields: Collection[str]) -> list[dict[str, Any]]:
    """The rows of a file inside an installed package, which is not imported.

    Raises:
      ModuleNotFoundError: the package is not installed.
      ValueError: a row lacks one of the fields.
    """
    found = importlib.util.find_spec(module)
    folders = (found and found.submodule_search_locations) or []
    path = next((Path(folder, file) for folder in folders), None)
    if path is None or not path.exists():
        raise ModuleNotFoundError(f"{module} must be installed", name=module)
    rows = read_lines(path)
    if not rows or not all({*fields} <= row.keys() for row in rows):
        raise ValueError(f"{module}: lines of {path} must have {', '.join(sorted(fields))}")
    return rows


def wanted(
    row: Any, name: str, place: int, path: Path, kind: type | tuple[type, ...] = object
) -> Any:
    """A field of a row, or of an object in it.

    Args:
      row: an object of JSON.
      name: of the field.
      place: number of the row, from 0, for errors.
      path: its file, for errors.
      kind: required type of the value; a bool is not a number.
    Raises:
      ValueError: the field is missing or of another type; names the row.
    """
    if not isinstance(row, Mapping) or name not in row:
        got = sorted(row) if isinstance(row, Mapping) else row
        raise ValueError(f"row {place + 1} of {path} must have the field {name!r}, got {got!r}")
    value = row[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not object):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join(_NAMES[each] for each in kinds)
        raise ValueError(f"row {place + 1} of {path}: {name!r} must be {names}, got {value!r}")
    return value


def wanted_list(
    row: Any, name: str, place: int, path: Path, kind: type | tuple[type, ...]
) -> list[Any]:
    """A field of a row that is a list, all of whose entries are of a type.

    Args:
      row: an object of JSON.
      name: of the field.
      place: number of the row, from 0, for errors.
      path: its file, for errors.
      kind: required type of the entries.
    Raises:
      ValueError: as `wanted`.
    """
    return [
        wanted({name: part}, name, place, path, kind)
        for part in wanted(row, name, place, path, list)
    ]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes rows, one per line."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def command(name: str, page: str | None, read: str) -> argparse.ArgumentParser:
    """The parser of a command that reads one file and writes another.

    Args:
      name: name of its module.
      page: docstring of the module.
      read: name of the first argument; the second one is `out`.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m rlvr_jax.tasks.synthesis.{name}",
        description=page,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(read, type=Path)
    parser.add_argument("out", type=Path)
    return parser


def run_command(main: Callable[[Sequence[str]], None]) -> None:
    """Runs a command on the arguments of the process; a user error ends in a sentence."""
    try:
        main(sys.argv[1:])
    except ValueError as error:
        sys.exit(f"error: {error}")
