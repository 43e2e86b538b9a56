"""Results of two queries, compared by value: rows as a multiset, or as a sequence.

Whole numbers are integers. Other numbers are equal within 6 significant digits or a relative 1e-6.
A number never equals a text, and NULL never equals ''. Names of columns do not count.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

_RELATIVE = 1e-6
_EXACT_WHOLE = 1e15  # whole floats beyond carry rounding errors of whole numbers
_MOST_LEFT = 300  # rows without an equal key that are matched one by one


class Table(NamedTuple):
    """Rows of a result, and the number of columns, which an empty result also has."""

    columns: int
    rows: Sequence[Sequence[Any]]


def cell(value: Any) -> Any:
    """A value of a database as None, int, float or text; bytes as ("bytes", hex), lists as tuples.

    Booleans are 1 or 0, dates and times are ISO texts, because sqlite has no types for them.
    """
    if value is None or isinstance(value, int | str):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, float | Decimal):
        number = float(value)
        whole = abs(number) < _EXACT_WHOLE and number == int(number)
        return int(number) if whole else number
    if isinstance(value, bytes | bytearray | memoryview):
        return ("bytes", bytes(value).hex())
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, dict):
        return ("object", *(part for pair in value.items() for part in map(cell, pair)))
    if isinstance(value, list | tuple):
        return ("list", *map(cell, value))
    return str(value)


def fetched(
    engine: str, columns: int, rows: Iterable[Sequence[Any]], max_rows: int, max_bytes: int
) -> Table:
    """A result as `cell`s; raises ValueError if it is larger than allowed.

    Args:
      engine: name of the engine, for errors.
      columns: number of columns.
      rows: of the result.
      max_rows: largest number of rows.
      max_bytes: largest size of the texts and blobs.
    """
    found: list[Sequence[Any]] = []
    size = 0
    for row in rows:
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if len(found) >= max_rows or size > max_bytes:
            raise ValueError(f"{engine}: results must have at most {max_rows} rows")
        found.append(tuple(map(cell, row)))
    return Table(columns, found)


def equal(gold: Table, found: Table, ordered: bool) -> bool:
    """Whether two results of `cell`s are equal; with `ordered` also in the order of rows."""
    if gold.columns != found.columns or len(gold.rows) != len(found.rows):
        return False
    if ordered:
        return all(map(_same_row, gold.rows, found.rows))
    left = _without_common(gold.rows, found.rows)
    if not left[0]:
        return True
    if len(left[0]) > _MOST_LEFT:
        return False
    # Rounding separates some values that differ by less than the tolerance.
    for row in left[0]:
        place = next((i for i, other in enumerate(left[1]) if _same_row(row, other)), None)
        if place is None:
            return False
        left[1].pop(place)
    return True


def _without_common(
    first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]]
) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    """The rest of two multisets when rows of equal keys are removed in pairs."""
    left = []
    for rows, others in ((first, second), (second, first)):
        count = Counter(map(_key, others))
        rest = []
        for row in rows:
            key = _key(row)
            count[key] -= 1
            if count[key] < 0:
                rest.append(row)
        left.append(rest)
    return left[0], left[1]


def _key(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple((isinstance(value, str), _rounded(value)) for value in row)


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    number = float(f"{value:.6g}")
    return "nan" if math.isnan(number) else number


def _same_row(row: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(map(_same, row, other))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        if not all(isinstance(value, int | float) for value in (a, b)):
            return False
        return _rounded(a) == _rounded(b) or math.isclose(a, b, rel_tol=_RELATIVE)
    return type(a) is type(b) and a == b
