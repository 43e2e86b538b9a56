"""Heimdall: a verdict has the reward +1 or -1."""

import numpy as np
from reward_rows import rollouts

from rlvr_jax.methods.judges.heimdall import true_verdict


def test_a_verdict_that_is_not_true_has_reward_minus_1():
    batch = rollouts(outcome=(1.0, 1.0, 1.0, 0.0))
    reward, _, metrics = true_verdict().apply(batch, (), None)
    np.testing.assert_array_equal(reward, [1, 1, 1, -1])
    assert float(metrics["reward/verdict"]) == 0.5
    assert float(metrics["reward/penalized"]) == 0.25
