"""RLSP: adds a reward for the length and effort of reasoning to the outcome."""

import numpy as np
from golden_vectors import array
from reward_rows import rollouts

from rlvr_jax.methods.rewards.rlsp import decoupled_exploration

EXACT = 1e-12  # float64, a few operations


def test_the_longest_is_paid_most_where_nobody_is_right_and_a_cut_one_no_more_than_the_shortest():
    batch = rollouts(outcome=(0.0,) * 4, answer=array([0, 1, 2, 3], np.int32))
    found = decoupled_exploration(2.0)(batch)
    np.testing.assert_allclose(found, [-2, -1, -2 / 3, -0.5], atol=EXACT)
    for scale, spread in ((2.0, 1.5), (0.0, 0.0)):
        _, _, metrics = decoupled_exploration(scale).apply(batch, (), None)
        np.testing.assert_allclose(metrics["exploration_range"], spread, atol=EXACT)
    cut = array([False, True, False, True], bool)
    held = batch.replace(truncated=cut, length=array([3, 1, 3, 4], np.int32))
    np.testing.assert_allclose(decoupled_exploration(3.0)(held), [-1, -3, -1, -1], atol=EXACT)
    silent = batch.replace(answer=array([-1, 1, 2, 3], np.int32))
    np.testing.assert_array_equal(decoupled_exploration(0.0)(silent), [-0.5, 0, 0, 0])
