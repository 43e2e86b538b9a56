"""The tier in which a variant of a test is run: the first, the thorough or the slow one."""

import pytest


def everyday(values, *chosen, first=None):
    """Parameters of a test; those that are not chosen are slow.

    Args:
      values: a value each, or a tuple of them where the test has several parameters.
      chosen: some of them.
      first: those of the chosen that the first tier runs; the others are thorough. None: all.
    """
    values = list(values)
    first = chosen if first is None else first
    unknown = [each for each in (*chosen, *first) if each not in values]
    if unknown:
        raise ValueError(f"everyday: chosen and first must be among {values}, got {unknown}")

    def marks(value):
        if value not in chosen:
            return pytest.mark.slow
        return () if value in first else pytest.mark.thorough

    return [
        pytest.param(*(value if isinstance(value, tuple) else [value]), marks=marks(value))
        for value in values
    ]
