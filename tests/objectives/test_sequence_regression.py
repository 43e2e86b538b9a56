"""Pairs of answers, and their equivalence to a policy gradient."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array, assert_agrees

from rlvr_jax.methods.clipping.copg import (
    group_pair_spread,
    pairwise_regression,
    regularized_leave_one_out,
)
from rlvr_jax.objectives import Context, reinforce
from rlvr_jax.types import Signals, replace

GROUP = np.array([7, 7, 2, 7, 9, 2])  # of three, two and one


def test_the_spread_is_the_mean_over_pairs():
    values = np.array([1.0, 3.0, -2.0, 4.0, 5.0, -2.0])
    found = group_pair_spread(array(values, float), array(GROUP, np.int32))
    for i, value in enumerate(values):
        others = values[(GROUP[i] == GROUP) & (np.arange(6) != i)]
        assert_agrees(found[i], np.mean((others - value) ** 2) if others.size else 0.0)


def test_pairs_have_the_gradient_of_leave_one_out_also_at_equal_values():
    batch = golden.rollouts("b")
    rewards = array(np.where(np.asarray(batch.group) == 0, 0.5, batch.reward), float)
    batch = replace(batch, reward=rewards)
    length = np.asarray(batch.mask).sum(axis=1, keepdims=True).astype(float)

    def slope(surrogate, per_token):
        def total(logp):
            context = Context(replace(golden.stats("b"), logp=logp), batch, batch.old_logp, None)
            signals = Signals.neutral(batch.mask, np.float64)
            signals, _, _ = regularized_leave_one_out(0.3).apply(signals, context, ())
            values = surrogate.loss(jax.lax.stop_gradient(signals), context)
            return jnp.sum(jnp.where(batch.mask, values, 0) / per_token)

        return jax.grad(total)(golden.stats("b").logp)

    # The pair loss stands at every token of a rollout, the other one is summed over them.
    assert_agrees(slope(pairwise_regression(0.3), length), slope(reinforce(), 1.0))


def test_a_coefficient_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="coefficient must be positive, got 0"):
        pairwise_regression(0)
