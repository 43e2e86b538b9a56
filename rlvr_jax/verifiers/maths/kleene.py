"""Truth with a third value: None is not known yet."""

from collections.abc import Iterable, Sequence

__all__ = ["all_of", "any_of", "paired"]

Truth = bool | None


def all_of(values: Iterable[Truth]) -> Truth:
    values = list(values)
    return False if False in values else None if None in values else True


def any_of(values: Iterable[Truth]) -> Truth:
    values = list(values)
    return True if True in values else None if None in values else False


def paired(rows: Sequence[Sequence[Truth]]) -> bool:
    """True if each row has a True in a column of its own; equal rows make the choice free."""
    free = list(range(len(rows)))
    for row in rows:
        column = next((column for column in free if row[column]), None)
        if column is None:
            return False
        free.remove(column)
    return True
