"""Which variants of a test are run every day; the others are run with the slow ones."""

import pytest


def everyday(values, *kept):
    """Parameters of a test, of which those that are kept are run every day.

    Args:
      values: a value each, or a tuple of them where the test has several parameters.
      kept: some of them.
    """
    values = list(values)
    unknown = [each for each in kept if each not in values]
    if unknown:
        raise ValueError(f"everyday: kept must be among {values}, got {unknown}")
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else [value]),
            marks=() if value in kept else pytest.mark.slow,
        )
        for value in values
    ]
