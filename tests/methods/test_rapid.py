"""RAPID: many off-policy steps on one big batch, with weights and baseline of the current
policy.
"""

import jax.numpy as jnp
import numpy as np
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.off_policy.rapid import capped_rollout_weight


def test_huge_ratios_are_capped_before_they_overflow():
    logp = array([[400.0, 400.0], [-1.0, 0.0]], np.float64)
    mask = array([[1, 1], [1, 0]], bool)
    weight = capped_rollout_weight(logp, jnp.zeros_like(logp), mask, 2.0)
    assert_agrees(weight, [2, np.exp(-1)])
