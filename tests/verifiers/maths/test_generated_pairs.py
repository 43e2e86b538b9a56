"""The mathematics verifier against exact arithmetic, on generated pairs of thirteen types."""

import generated_pairs
import pytest

# Of each type, half of them near misses.
FEW, MANY = 24, 200


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", generated_pairs.TYPES, ids=lambda make: make.__name__)
def test_generated_pairs_are_equal_if_exact_arithmetic_says_so(verifier, make, count):
    made = generated_pairs.pairs(make, count)
    golds, answers, equal = zip(*made, strict=True)
    verdicts = verifier.grade(golds, [rf"\boxed{{{answer}}}" for answer in answers])
    found = [verdict.outcome for verdict in verdicts]
    assert len(made) == count
    assert [row for row, right in zip(made, found, strict=True) if right != row[2]] == []
    assert sum(equal) == count // 2
