"""Rewards of tokens and steps, with holes in the mask."""

import numpy as np
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.credit.implicit_prm import cumulative_reward, step_scores, worst_step
from rlvr_jax.objectives.statistics.implicit_rewards import step_ends
from rlvr_jax.objectives.statistics.steps import find_steps

MASK = array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
STEP = array([[0, -1, 0, 3, -1], [-1] * 5], np.int32)


def test_steps_end_at_their_last_token_and_add_up():
    steps = find_steps(STEP, MASK)
    np.testing.assert_array_equal(step_ends(steps), [[0, 0, 1, 1, 0], [0] * 5])
    token = array([[1, 9, -3, 0.5, 9], [9] * 5], np.float64)
    cumulative = cumulative_reward(token, MASK)
    gains, values = step_scores(cumulative, steps)
    assert_agrees(gains, [[0, 0, -2, 0.5, 0], [0] * 5])
    assert_agrees(values, [[0, 0, -2, -1.5, 0], [0] * 5])
    assert_agrees(worst_step(gains, steps), [-2, 0])


def test_ends_of_interleaved_steps_are_found():
    steps = find_steps(array([[1, 0, 1, 0]], np.int32), array(np.ones((1, 4)), bool))
    np.testing.assert_array_equal(step_ends(steps), [[False, False, True, True]])
