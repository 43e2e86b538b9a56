"""Pairs of agents in groups of any size, and what their past is worth."""

import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods.agents.social_rl import alignment_term, partner_row, past_mean

ATOL = 1e-14  # float64, sums of a few terms
ADVANTAGE = np.random.default_rng(0).normal(size=(5, 4))


def test_partners_are_neighbours_by_rollout_id_and_the_last_of_an_odd_group_is_alone():
    group = np.array([3, 8, 3, 3, 8])
    rollout_id = np.array([2, 0, 7, 1, 4])
    found = partner_row(jnp.asarray(group), jnp.asarray(rollout_id))
    np.testing.assert_array_equal(found, [3, 4, -1, 0, 1])
    term = alignment_term(jnp.ones((5, 4)), jnp.asarray(ADVANTAGE), found)
    assert not np.asarray(term)[2].any()
    np.testing.assert_array_equal(term[0], ADVANTAGE[3])


def test_the_past_ends_before_the_present_turn():
    mean = past_mean(jnp.asarray(ADVANTAGE))
    for t in range(4):
        before = ADVANTAGE[:, :t]
        np.testing.assert_allclose(mean[:, t], before.mean(axis=1) if t else 0, atol=ATOL)
