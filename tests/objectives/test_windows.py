"""Credit across the cut of a window."""

import numpy as np
from golden_vectors import array

from rlvr_jax.methods.clipping.t_ppo import critic_targets, extended_advantages
from rlvr_jax.objectives.advantages.returns import generalized_advantages, token_rewards

MASK = array([[1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]], bool)
VALUES = array([[0.1, 0.4, 0.3, 9], [0.5, 9, 0.2, 0.6], [9, 9, 9, 9], [0.7, 9, 9, 9]], float)
REWARD = array([1.0, 1.0, 1.0, 1.0], float)
ROWS = np.arange(4)


def test_finished_responses_have_plain_generalized_advantages():
    found = extended_advantages(REWARD, VALUES, MASK, array(ROWS < 0, bool))
    wanted = generalized_advantages(token_rewards(REWARD, MASK), VALUES, MASK, 1.0, 0.95)
    np.testing.assert_array_equal(found, wanted)


def test_a_cut_is_no_surprise_and_its_reward_is_not_read():
    cut = array(ROWS >= 0, bool)
    errors = extended_advantages(REWARD * np.nan, VALUES, MASK, cut, trace_decay=0.0)
    wanted = [[0.3, -0.1, 0, 0], [-0.3, 0, 0.4, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(errors, wanted, rtol=0, atol=1e-15)
    assert errors[0, 2] == errors[1, 3] == errors[3, 0] == 0


def test_without_decay_a_cut_compares_with_the_value_before_it():
    found = extended_advantages(REWARD, VALUES, MASK, array(ROWS == 1, bool), trace_decay=1.0)
    np.testing.assert_allclose(found[1], [0.1, 0, 0.4, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[0], [0.9, 0.6, 0.7, 0], rtol=0, atol=1e-15)


def test_the_critic_is_fitted_to_finished_responses_alone():
    returns, mask = critic_targets(REWARD, MASK, array(ROWS == 1, bool))
    np.testing.assert_array_equal(mask, np.asarray(MASK) & (ROWS != 1)[:, None])
    np.testing.assert_array_equal(returns, np.asarray(mask).astype(float))
