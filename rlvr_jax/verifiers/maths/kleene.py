"""_Truth with a third value: None is not known yet."""

from collections.abc import Iterable, Sequence

_Truth = bool | None


def all_of(values: Iterable[_Truth]) -> _Truth:
    values = list(values)
    return False if False in values else None if None in values else True


def any_of(values: Iterable[_Truth]) -> _Truth:
    values = list(values)
    return True if True in values else None if None in values else False


def paired(rows: Sequence[Sequence[_Truth]]) -> bool:
    """True if each row has a True in a column of its own; equal rows make the choice free."""
    free = list(range(len(rows)))
    for row in rows:
        column = next((column for column in free if row[column]), None)
        if column is None:
            return False
        free.remove(column)
    return True
