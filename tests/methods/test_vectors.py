"""Every method and primitive agrees with its reference vectors, array by array."""

from pathlib import Path
from zipfile import ZipFile

import golden_vectors as golden
import numpy as np
import pytest
from check_golden import SLUGS, TOLERANCE, compare, difference

from rlvr_jax.methods import names

SMALL = 140_000
"""Bytes of a case that every day compares: larger ones compile for more than half of the time."""


def size(slug, case):
    """Bytes of the arrays of a case."""
    with ZipFile(golden.FOLDER / f"{slug}_{case}.npz") as file:
        return sum(array.file_size for array in file.infolist())


def every_vector():
    """Golden cases by method, of which one is enough for every day: compiling takes the time."""
    for slug in SLUGS:
        for number, case in enumerate(golden.CASES):
            slow = number > 0 or size(slug, case) > SMALL
            yield pytest.param(slug, case, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("slug", "case"), list(every_vector()))
def test_every_array_agrees(slug, case):
    done = compare(slug, golden.Case(golden.FOLDER, case))
    assert done.differences and not done.missing
    assert {name: d for name, d in done.differences.items() if not d <= TOLERANCE} == {}


def test_a_method_without_vectors_has_tests_or_cases_of_its_name():
    tests = Path(__file__).parents[1]
    named = {path.stem.removeprefix("test_") for path in tests.rglob("test_*.py")}
    named |= {path.stem for path in (tests / "cases").glob("*.jsonl")}
    assert set(names()) <= set(SLUGS) | named


@pytest.mark.parametrize(
    ("found", "wanted", "result"),
    [
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 1e-30], [0.0, 0.0], np.inf),
        ([np.inf, 1.0], [np.inf, 1.0], 0.0),
        ([np.nan, 1.0], [2.0, 1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
    ],
)
def test_differences_are_relative_to_the_largest_magnitude(found, wanted, result):
    assert difference(found, wanted) == result
