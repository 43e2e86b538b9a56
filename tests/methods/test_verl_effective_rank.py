"""The effective rank of states of known shape, and of responses too short for a trend."""

import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.entropy.verl_effective_rank import effective_rank, rank_trend

# p and its logarithm carry 1e-8 each; some ten terms.
TOLERANCE = 1e-6


def test_rank_counts_the_directions_that_centred_states_fill():
    every = jnp.ones(6, bool)
    line = jnp.arange(6.0)[:, None] * array([[1.0, -2.0, 0.5]], float)
    np.testing.assert_allclose(effective_rank(line + 7, every), 1, atol=TOLERANCE)
    axes = jnp.concatenate([jnp.eye(3), -jnp.eye(3)]).astype(float)
    np.testing.assert_allclose(effective_rank(axes, every), 3, atol=TOLERANCE)
    two = array([1, 0, 0, 1, 0, 0], bool)
    poisoned = jnp.where(two[:, None], axes, jnp.nan)
    np.testing.assert_allclose(effective_rank(poisoned, two), 1, atol=TOLERANCE)


def test_fewer_than_two_states_have_rank_0():
    states = jnp.ones((3, 2))
    assert effective_rank(states, array([0, 1, 0], bool)) == 0
    assert effective_rank(states, array([0, 0, 0], bool)) == 0


@pytest.mark.thorough
def test_short_responses_have_no_trend_and_a_window_sees_the_last_tokens():
    states = array(np.random.default_rng(0).normal(size=(3, 8, 4)), float)
    mask = array([[1] * 8, [1, 1, 1, 0, 0, 0, 0, 0], [0] * 8], bool)
    trend = rank_trend(states, mask, stride=2, window=8)
    assert trend.velocity[0] != 0 and trend.acceleration[0] != 0
    assert not np.any([trend.velocity[1:], trend.acceleration[1:]]) and trend.rank[2] == 0
    windowed = rank_trend(states, mask, stride=2, window=5)
    last = rank_trend(states[:1, 3:], jnp.ones((1, 5), bool), stride=2, window=5)
    np.testing.assert_allclose(windowed.velocity[0], last.velocity[0])
    np.testing.assert_array_equal(windowed.rank, trend.rank)
    coarse = rank_trend(states, mask, stride=20, window=8)
    np.testing.assert_array_equal(coarse.rank, trend.rank)
    assert not np.any([coarse.velocity, coarse.acceleration])
