"""Turns of a critic, and which trajectories make a pair."""

import jax.numpy as jnp
import numpy as np
from golden_vectors import array, rollouts

from rlvr_jax.objectives.regularizers.turn_preferences import (
    best_in_group,
    pair_losses,
    pairs_with_best,
)
from rlvr_jax.types import replace

BATCH = rollouts("b")


def test_ties_and_rollouts_without_tokens_make_no_pair():
    reward = array([0.9, 0.9, 0.1, 0.2] * 3, np.float64)
    mask = np.asarray(BATCH.mask).copy()
    mask[[3, 4]] = False  # one of the worse in the first group, the best of the second
    batch = replace(BATCH, reward=reward, mask=array(mask, bool))
    best = best_in_group(reward, batch.group, batch.rollout_id)
    np.testing.assert_array_equal(best, np.repeat([0, 4, 8], 4))
    pairs = np.asarray(pairs_with_best(batch, best))
    np.testing.assert_array_equal(np.flatnonzero(pairs), [2, 10, 11])
    losses = np.asarray(pair_losses(jnp.zeros(12), best, jnp.asarray(pairs), 0.1))
    np.testing.assert_allclose(losses, np.where(pairs, np.log(2), 0), rtol=1e-15)


def test_the_best_of_equals_is_the_one_of_smallest_rollout_id():
    reward, group = jnp.asarray([1.0, 0.0, 1.0]), jnp.zeros(3, jnp.int32)
    found = best_in_group(reward, group, jnp.asarray([5, 0, 4]))
    np.testing.assert_array_equal(found, [2, 2, 2])
