"""Step tables: order, gaps, rows without steps, and their neighbours."""

import jax
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.objectives.statistics.steps import (
    at_tokens,
    find_steps,
    next_step,
    previous_step,
    step_mean,
    step_sum,
)

IDS = array([[4, 4, 7, -1, 7, 2], [0, 1, 1, 9, 9, 3], [5, 5, 5, 5, 5, 5]], np.int32)
MASK = array([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0]], bool)
VALUES = array(np.where(MASK, np.arange(18).reshape(3, 6), np.nan), float)


def test_steps_stand_in_the_order_of_their_ids_without_gaps():
    steps = find_steps(IDS, MASK)
    np.testing.assert_array_equal(np.sum(steps.exists, axis=1), [3, 4, 0])
    np.testing.assert_array_equal(steps.index[0][np.array([0, 1, 2, 4, 5])], [1, 1, 2, 2, 0])
    np.testing.assert_array_equal(steps.index[1][np.array([0, 1, 4, 5])], [0, 1, 3, 2])
    assert not steps.member[0, 3] and not steps.member[2].any()


def test_tables_hold_sums_means_and_neighbours():
    def measure(values):
        steps = find_steps(IDS, MASK)
        mean = step_mean(values, steps)
        others = (next_step(mean, steps), previous_step(mean, steps), at_tokens(mean, steps))
        return step_sum(values, steps), mean, *others

    total, mean, following, preceding, tokens = jax.jit(measure)(VALUES)
    np.testing.assert_array_equal(total[0], [5, 1, 6, 0, 0, 0])
    np.testing.assert_array_equal(mean[0], [5, 0.5, 3, 0, 0, 0])
    np.testing.assert_array_equal(following[0], [0.5, 3, 0, 0, 0, 0])
    np.testing.assert_array_equal(preceding[0], [0, 5, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(tokens[0], [0.5, 0.5, 3, 0, 3, 5])
    np.testing.assert_array_equal(mean[1], [6, 7, 11, 10, 0, 0])
    assert not np.any([total[2], mean[2], following[2], preceding[2], tokens[2]])


def test_ids_may_be_of_any_size():
    # Of ids below T a table is made; the others are sorted.
    small = array([[4, 4, 1, -1, 1, 2], [0, 1, 1, 5, 5, 3], [5, 5, 5, 5, 5, 5]], np.int32)
    found, wanted = find_steps(small, MASK), find_steps(1000 * small, MASK)
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own, other)
    np.testing.assert_array_equal(found.index[1], [0, 1, 0, 0, 3, 2])


@pytest.mark.thorough
def test_a_row_may_have_as_many_steps_as_tokens():
    every = array([[3, 1, 2]], np.int32)
    steps = find_steps(every, array(np.ones((1, 3)), bool))
    values = array([[3.0, 1.0, 2.0]], float)
    np.testing.assert_array_equal(step_mean(values, steps), [[1, 2, 3]])
    np.testing.assert_array_equal(at_tokens(step_mean(values, steps), steps), values)
