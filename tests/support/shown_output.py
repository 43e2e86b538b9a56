"""Printed output against the output that a page or a notebook shows."""

import re

import numpy as np

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# Printed numbers are rounded: by one in the last of two digits after the point, or of a percentage.
ROUNDED = dict(atol=0.011, rtol=0.06)


def assert_shows(shown: str, printed: str) -> None:
    """Fails unless both texts have the same words and, but for rounding, the same numbers."""
    assert NUMBER.sub("", printed).split() == NUMBER.sub("", shown).split()
    np.testing.assert_allclose(
        *(np.array(NUMBER.findall(text), float) for text in (printed, shown)), **ROUNDED
    )
