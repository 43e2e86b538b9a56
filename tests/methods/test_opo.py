"""OPO: the reward baseline of least variance, on exactly on-policy updates."""

import numpy as np
from golden_vectors import rollouts
from one_transform import signals

from rlvr_jax.methods.baselines.opo import length_centered

ATOL = 1e-14  # float64, a handful of operations on numbers of order one


def test_length_centered_advantages_sum_to_0_over_the_tokens_of_a_group():
    found = np.asarray(signals(length_centered(), batch=rollouts("b", True)).advantage)
    np.testing.assert_allclose(found.reshape(3, -1).sum(axis=1), 0, atol=ATOL * 30)
