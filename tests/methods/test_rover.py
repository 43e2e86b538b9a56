"""Regression on the value of the uniform policy."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.clipping.rover import next_value, uniform_value_regression
from rlvr_jax.objectives import Context
from rlvr_jax.types import Signals, replace


def test_the_next_value_is_zero_at_the_end_and_before_a_hole():
    values = array([[1, 2, 3, 4], [5, 6, 7, 8]], float)
    mask = array([[1, 1, 0, 1], [1, 1, 1, 0]], bool)
    np.testing.assert_array_equal(next_value(values, mask), [[2, 0, 4, 0], [6, 7, 0, 0]])


def test_the_first_update_is_reinforce_and_only_the_log_prob_is_trained():
    batch = golden.rollouts("b")
    surrogate = uniform_value_regression(1.0, 1.0)
    unmoved = golden.stats("b").replace(
        logp=batch.old_logp,
        mean_logit=batch.records["old_mean_logit"],
        logsumexp=batch.records["old_logsumexp"],
    )
    signals = Signals.neutral(batch.mask, np.float64)
    signals = replace(signals, advantage=signals.advantage + batch.reward[:, None])

    def total(stats):
        return jnp.sum(surrogate.loss(signals, Context(stats, batch, batch.old_logp, None)))

    slopes = jax.grad(total, allow_int=True)(unmoved)
    np.testing.assert_array_equal(slopes.logp, -2 * signals.advantage)
    assert (
        not np.asarray(slopes.records["logsumexp"]).any()
        and not np.asarray(slopes.records["mean_logit"]).any()
    )


def test_a_scale_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="scale must be positive, got 0"):
        uniform_value_regression(0, 1.0)
