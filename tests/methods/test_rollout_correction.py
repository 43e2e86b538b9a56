"""Rollout correction: tokens are weighed by how far the sampler is from the policy it served."""

import numpy as np
from strays import decided

from rlvr_jax.methods.off_policy.rollout_correction import drop_drifted_failures


def test_only_failures_that_drifted_are_silenced():
    signals, _ = decided(drop_drifted_failures(-100.0))
    failed = np.asarray(signals.mask) & (np.asarray(signals.advantage) < 0)
    np.testing.assert_array_equal(np.asarray(signals.weight) == 0, failed)
    assert (np.asarray(decided(drop_drifted_failures(100.0))[0].weight) == 1).all()
