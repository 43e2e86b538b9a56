"""DRIVE: training continues on fewer and fewer prompts, those with the lowest pass rates."""

import numpy as np
import pytest
from answering import Right, numbers_of

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.drive import hardest, shrinking_pool


def test_the_pool_keeps_the_prompts_of_lowest_rate():
    pool = np.array([True, True, False, True, True])
    rates = np.array([0.5, np.nan, 0.0, 0.25, 0.25])
    np.testing.assert_array_equal(hardest(pool, rates, 2), [False, False, False, True, True])
    np.testing.assert_array_equal(hardest(pool, rates, 1), [False, False, False, True, False])
    np.testing.assert_array_equal(hardest(pool, rates, 9), pool)


def test_a_run_ends_on_its_hardest_prompts():
    actor = Right(lambda number: 1 - number / 12)
    chain = experience(shrinking_pool(after=[3, 5], fractions=[0.5, 0.2]))
    found = numpy_actor.walk(chain, actor, steps=7, own=numpy_actor.setting(chain, samples=12))
    asked = [set(numbers_of(collected)) for collected, _, _ in found]
    # Three steps of four prompts come round once.
    assert asked[0] | asked[1] | asked[2] == set(range(12))
    assert asked[3] | asked[4] <= set(range(6, 12))
    assert asked[5] == asked[6] == {9, 10, 11}
    assert [told["pool_prompts"] for _, told, _ in found] == [12, 12, 6, 6, 3, 3, 3]
    # Three prompts fill four groups: one has two, which are not alike.
    last = found[-1][0].batch
    twice = [
        rows
        for rows in last.groups
        if numbers_of(found[-1][0]).count(last.requests[rows[0]].number) > 12
    ]
    assert len(twice) == 2
    assert np.any(last.rollouts.tokens[twice[0]] != last.rollouts.tokens[twice[1]])


@pytest.mark.parametrize(
    ("after", "fractions", "wanted"),
    [
        ([3, 2], [0.5, 0.2], r"after must not fall, got \(3, 2\)"),
        ([3], [0.5, 0.2], r"fractions must be 1 numbers, got \(0.5, 0.2\)"),
        ([0], [0.5], "each of after must be at least 1, got 0"),
    ],
)
def test_phases_that_do_not_fit_are_refused(after, fractions, wanted):
    with pytest.raises(ValueError, match=f"shrinking_pool: {wanted}"):
        shrinking_pool(after, fractions)
