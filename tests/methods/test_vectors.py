"""Every method and primitive agrees with its reference vectors, array by array."""

from pathlib import Path

import golden_vectors as golden
import numpy as np
import pytest
from check_golden import SLUGS, TOLERANCE, compare, difference
from everyday import everyday

from rlvr_jax.methods import names

EVERY_CASE = everyday(golden.CASES, *golden.CASES[:1])


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("case", EVERY_CASE)
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
