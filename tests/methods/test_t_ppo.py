"""Credit across the end of a window."""

import numpy as np
from golden_vectors import array

from rlvr_jax.methods.clipping.t_ppo import critic_of_finished, extended_advantage
from rlvr_jax.objectives import Context
from rlvr_jax.objectives.advantages.returns import generalized_advantages, token_rewards
from rlvr_jax.types import Rollouts, Signals, TokenStats

MASK = array([[1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]], bool)
VALUES = array([[0.1, 0.4, 0.3, 9], [0.5, 9, 0.2, 0.6], [9, 9, 9, 9], [0.7, 9, 9, 9]], float)
REWARD = array([1.0, 1.0, 1.0, 1.0], float)
ROWS = np.arange(4)


def batch(truncated, reward=REWARD):
    tokens, truncated = np.zeros((4, 4), int), array(truncated, bool)
    group = np.zeros(4, int)
    return Rollouts.of_responses(tokens, MASK, reward, group, values=VALUES, truncated=truncated)


def advantages(rollouts, trace_decay=0.95):
    signals = Signals.neutral(rollouts.mask, float)
    context = Context(TokenStats(), rollouts, None, None)
    return extended_advantage(1.0, trace_decay).apply(signals, context, ())[0].advantage


def test_finished_responses_have_plain_generalized_advantages():
    wanted = generalized_advantages(token_rewards(REWARD, MASK), VALUES, MASK, 1.0, 0.95)
    np.testing.assert_array_equal(advantages(batch(ROWS < 0)), wanted)


def test_the_error_at_the_end_of_a_window_is_0_and_the_reward_is_not_read():
    errors = advantages(batch(ROWS >= 0, REWARD * np.nan), trace_decay=0.0)
    wanted = [[0.3, -0.1, 0, 0], [-0.3, 0, 0.4, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(errors, wanted, rtol=0, atol=1e-15)
    assert errors[0, 2] == errors[1, 3] == errors[3, 0] == 0


def test_without_decay_the_end_of_a_window_compares_with_the_value_before_it():
    found = advantages(batch(ROWS == 1), trace_decay=1.0)
    np.testing.assert_allclose(found[1], [0.1, 0, 0.4, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[0], [0.9, 0.6, 0.7, 0], rtol=0, atol=1e-15)


def test_the_critic_is_fitted_only_to_finished_responses():
    critic, rollouts = critic_of_finished(), batch(ROWS == 1)
    finished = np.asarray(MASK) & (ROWS != 1)[:, None]
    np.testing.assert_array_equal(critic.weigh(rollouts), finished.astype(float))
    np.testing.assert_array_equal(critic.returns(rollouts), finished.astype(float))
