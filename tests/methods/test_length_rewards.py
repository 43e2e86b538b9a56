"""Length rewards: four published rewards by which short correct responses earn more."""

import numpy as np
from reward_rows import rollouts

from rlvr_jax.methods.rewards.length_rewards import length_cosine, short_of_group

EXACT = 1e-12  # float64, a few operations


def test_a_group_of_equal_lengths_earns_nothing_for_them():
    np.testing.assert_array_equal(short_of_group()(rollouts(length=(2, 2, 2, 2))), 0)
    np.testing.assert_allclose(
        short_of_group()(rollouts(outcome=(1.0, 0, 0, 1.0))), [0.5, 0, -1 / 6, -0.5], atol=EXACT
    )


def test_the_cosine_does_not_rise_again_behind_its_length():
    found = length_cosine(2)(rollouts(outcome=(1.0, 1.0, 1.0, 0.0)))
    np.testing.assert_allclose(found, [0.75, 0.5, 0.5, -0.5], atol=EXACT)
