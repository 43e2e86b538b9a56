"""The baseline that scores weigh."""

import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods.credit.oblr_po import score_weighted_mean

RANDOM = np.random.default_rng(0)


def test_equal_rewards_are_their_own_baseline():
    reward, norm = jnp.full(5, 0.1), jnp.asarray(RANDOM.uniform(1, 9, 5))
    np.testing.assert_array_equal(score_weighted_mean(reward, norm, np.zeros(5, int)), reward)
    # Norms that all round to 0: of a policy that is sure of everything.
    rounded = score_weighted_mean(reward, jnp.zeros(5), np.zeros(5, int))
    np.testing.assert_array_equal(rounded, reward)
