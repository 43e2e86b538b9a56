"""Rewards of tokens and steps, with holes in the mask."""

import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.objectives.statistics.steps import find_steps, step_ends

MASK = array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
STEP = array([[0, -1, 0, 3, -1], [-1] * 5], np.int32)


@pytest.mark.thorough
def test_steps_end_at_their_last_token():
    steps = find_steps(STEP, MASK)
    np.testing.assert_array_equal(step_ends(steps), [[0, 0, 1, 1, 0], [0] * 5])


def test_ends_of_interleaved_steps_are_found():
    steps = find_steps(array([[1, 0, 1, 0]], np.int32), array(np.ones((1, 4)), bool))
    np.testing.assert_array_equal(step_ends(steps), [[False, False, True, True]])
