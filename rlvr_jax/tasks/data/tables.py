"""Tables: the rows of a file as dictionaries with their places; one reader per kind of file.

Text files are UTF-8, with or without a byte order mark, or UTF-16 with one. Files compressed by
gzip are read under any name. Rows are read one after the other.
"""

import contextlib
import csv
import gzip
import importlib
import io
import itertools
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

Row = tuple[str, dict[str, Any]]
"""The place of a row, for people, and its values by column."""

_ROWS_AT_ONCE = 1000
_LARGEST_FIELD = 2**31 - 1


def rows_of(kind: str, path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The rows of a file.

    Args:
      kind: one of `READERS`, or "parquet".
      columns: required columns, for kinds of files that can be read in part; None: all columns.
    Raises:
      ValueError: the file cannot be read as this kind; names the file, and the line if there are
        lines.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise _unreadable(kind, path, error) from None
    if start == b"PAR1" and kind != "parquet":
        raise ValueError(f"{kind}: path must be a text file, got {path}: name it parquet:{path}")
    yield from _parquet(path, columns) if kind == "parquet" else READERS[kind](path)


def _jsonl(path: Path) -> Iterator[Row]:
    with _text(path, "jsonl") as lines:
        yield from _objects("jsonl", path, lines)


def _objects(kind: str, path: Path, lines: Iterable[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _object(kind, f"{path}, line {number}", line)


def _object(kind: str, place: str, line: str) -> Row:
    try:
        row = _loads(line)
    except (ValueError, RecursionError) as error:
        whole = ". Read a file that is one array with json:" if line.lstrip()[:1] == "[" else ""
        raise ValueError(f"{kind}: {place}: must be a JSON object, got {error}{whole}") from None
    if not isinstance(row, dict):
        whole = ". Read a file that is one array with json:" if isinstance(row, list) else ""
        raise ValueError(f"{kind}: {place}: must be a JSON object, got {type(row).__name__}{whole}")
    return place, row


def _json(path: Path) -> Iterator[Row]:
    """An array of objects, an object with one such array, an object with a list per column, or one
    object per line, as many files with this ending have."""
    with _text(path, "json") as file:
        text = file.read()
    try:
        content = _loads(text)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) > 1 and all(line.lstrip()[0] == "{" for line in lines[:2]):
            yield from _objects("json", path, text.split("\n"))
            return
        raise ValueError(f"json: {path}: must be JSON, got {error}") from None
    if isinstance(content, dict):
        lists = {name: value for name, value in content.items() if isinstance(value, list)}
        if len(lists) == 1 and all(isinstance(x, dict) for x in next(iter(lists.values()))):
            content = next(iter(lists.values()))
        elif len(lists) == len(content) and len(set(map(len, lists.values()))) == 1:
            content = [
                dict(zip(lists, values, strict=True))
                for values in zip(*lists.values(), strict=True)
            ]
    if not isinstance(content, list):
        raise ValueError(f"json: {path}: must be an array of objects, got {type(content).__name__}")
    for number, row in enumerate(content, start=1):
        if not isinstance(row, dict):
            raise ValueError(
                f"json: {path}, row {number}: must be a JSON object, got {type(row).__name__}"
            )
        yield f"{path}, row {number}", row


def _csv(path: Path) -> Iterator[Row]:
    """The first line names the columns; commas, semicolons or tabs separate them."""
    limit = csv.field_size_limit(_LARGEST_FIELD)
    try:
        with _text(path, "csv", newline="") as file:
            first = file.readline()
            marks = [mark for mark in (",", "\t", ";") if mark in first]
            rows = csv.reader(itertools.chain([first], file), delimiter=marks[0] if marks else ",")
            names = next(rows, [])
            again = [name for name in names if names.count(name) > 1]
            if again:
                raise ValueError(
                    f"csv: {path}: columns must have different names, got {again[0]!r} twice"
                )
            for cells in rows:
                place = f"{path}, line {rows.line_num}"
                if len(cells) > len(names):
                    raise ValueError(
                        f"csv: {place}: must have at most {len(names)} values, as many as the"
                        f" columns in the first line, got {len(cells)}"
                    )
                if cells:
                    yield place, dict(zip(names, cells, strict=False))
    except csv.Error as error:
        raise ValueError(f"csv: {path}: must be a table, got {error}") from None
    finally:
        csv.field_size_limit(limit)


def _parquet(path: Path, columns: Sequence[str] | None) -> Iterator[Row]:
    """By pyarrow, or else by duckdb."""
    package = _package("parquet", path, "pyarrow", "duckdb")
    by_arrow = package == "pyarrow"
    rows = _parquet_by_arrow(path, columns) if by_arrow else _parquet_by_duckdb(path)
    for number, row in enumerate(rows, start=1):
        yield f"{path}, row {number}", row


def _parquet_by_arrow(path: Path, columns: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
            # A dot in a name would be read as a path into a structure.
            if columns is not None and not any("." in name for name in names):
                columns = [name for name in names if name in columns]
            else:
                columns = None
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns):
                yield from batch.to_pylist()
    except (ArrowException, OSError) as error:
        raise _unreadable("parquet", path, error) from None


def _parquet_by_duckdb(path: Path) -> Iterator[dict[str, Any]]:
    import duckdb

    try:
        with duckdb.connect() as connection:
            result = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            names = [column[0] for column in result.description]
            while rows := result.fetchmany(_ROWS_AT_ONCE):
                yield from (dict(zip(names, row, strict=True)) for row in rows)
    except duckdb.Error as error:
        raise _unreadable("parquet", path, error) from None


def _arrow(path: Path) -> Iterator[Row]:
    """Files of Arrow, as `datasets` saves them."""
    _package("arrow", path, "pyarrow")
    from pyarrow import ArrowException, ipc, memory_map

    number = 0
    try:
        with memory_map(str(path)) as source:
            try:
                batches = iter(ipc.open_stream(source))
            except ArrowException:
                file = ipc.open_file(source)
                batches = (file.get_batch(i) for i in range(file.num_record_batches))
            for batch in batches:
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except (ArrowException, OSError) as error:
        raise _unreadable("arrow", path, error) from None


def _package(kind: str, path: Path, *names: str) -> str:
    """The first of some packages that is installed."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
            return name
    raise ValueError(
        f"{kind}: {path} needs the package {' or '.join(names)}, which is not installed: run `pip"
        f" install {names[0]}`"
    )


READERS = {"jsonl": _jsonl, "json": _json, "csv": _csv, "arrow": _arrow}


@contextlib.contextmanager
def _text(path: Path, kind: str, newline: str = "\n") -> Iterator[io.TextIOBase]:
    """A text file to be read; lines end only at newlines, as JSON text may hold U+2028."""
    try:
        with path.open("rb") as plain:
            packed = plain.peek(2)[:2] == b"\x1f\x8b"
            file = gzip.GzipFile(fileobj=plain) if packed else plain
            wide = file.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
            yield io.TextIOWrapper(file, "utf-16" if wide else "utf-8-sig", newline=newline)
    except (OSError, EOFError, zlib.error, UnicodeError) as error:
        raise _unreadable(kind, path, error) from None


def _unreadable(kind: str, path: Path, error: Exception) -> ValueError:
    text = kind in ("jsonl", "json", "csv")
    wanted = "UTF-8 file" if text else f"{kind} file"
    reason = str(error).partition("\n")[0]
    return ValueError(f"{kind}: path must be a readable {wanted}, got {path}: {reason}")


def _loads(text: str) -> Any:
    """JSON with numbers as they are written: 0.10 has two digits, and integers have no limit."""
    return json.loads(text, parse_int=_integer, parse_float=Decimal)


def _integer(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # longer than Python reads
        return digits
