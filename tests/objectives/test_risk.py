"""Bundles of prompts: ragged groups, tracked quantiles, equal scores."""

import jax
import numpy as np
import pytest
from golden_vectors import array, rollouts, spec, stats

from rlvr_jax.objectives.aggregations import token_mean
from rlvr_jax.objectives.core import objective
from rlvr_jax.objectives.risk import TRACKED_LEVELS, bundled, risk_sensitive
from rlvr_jax.objectives.risk_credit import relative_credit
from rlvr_jax.objectives.surrogates import reinforce
from rlvr_jax.types import replace

ATOL = 1e-14  # float64, a few operations on numbers of order one
BATCH = rollouts("b", True)
RAGGED = replace(BATCH, group=array([5, 5, 5, 9, 9, 9, 9, 2, 2, 2, 2, 2], np.int32))


def after(updates, batch, estimator):
    own = objective(estimator, surrogate=reinforce(), aggregation=token_mean())
    state = own.init(spec(batch))
    for _ in range(updates):
        _, (state, _) = own.loss(stats("b"), batch, state, jax.random.key(0))
    return own.signals(stats("b"), batch, state, jax.random.key(0)).advantage, state


def test_scores_are_sums_of_the_rollouts_of_one_place():
    found, reward = bundled(RAGGED, 2), np.asarray(BATCH.reward)
    # Groups in the order of their ids: 2 and 5 are bundled, 9 is alone.
    np.testing.assert_array_equal(found.bundle, [0] * 3 + [1] * 4 + [0] * 5)
    np.testing.assert_allclose(found.score[7:10], reward[7:10] + reward[:3], atol=ATOL)
    np.testing.assert_allclose(found.score[:3], found.score[7:10], atol=ATOL)
    np.testing.assert_allclose(found.score[10:], reward[10:], atol=ATOL)
    np.testing.assert_array_equal(found.counted, [False] * 3 + [True] * 9)


def test_quantiles_are_those_of_the_first_scores_and_then_move():
    found = bundled(RAGGED, 2)
    scores = np.asarray(found.score)[np.asarray(found.counted)]
    first = np.quantile(scores, TRACKED_LEVELS)
    state = after(1, RAGGED, risk_sensitive(2))[1]["risk_sensitive"]
    np.testing.assert_allclose(state.quantiles, first, atol=ATOL)
    state = after(2, RAGGED, risk_sensitive(2))[1]["risk_sensitive"]
    below = (scores[None] < first[:, None]).mean(axis=1)
    np.testing.assert_allclose(state.quantiles, first + 0.1 * (TRACKED_LEVELS - below), atol=ATOL)


def test_equal_scores_give_0_at_first_and_a_bounded_value_later():
    same = replace(BATCH, reward=array(np.full(12, 0.1), np.float64))
    assert not np.asarray(after(0, same, risk_sensitive(2))[0]).any()
    later = np.asarray(after(3, same, risk_sensitive(2, max_value=7.0))[0])
    assert np.abs(later).max() == 7.0


def test_relative_credit_shares_out_the_value():
    reward = np.array([1.0, 0.0, 0.0, 1.0, 0.5, 0.5])
    group, unit = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1])
    reward[2] = 0.2
    found = np.asarray(relative_credit(np.full(6, 3.0), reward, group, unit, 1e-6))
    np.testing.assert_allclose(found[unit == 0].sum(), 3.0, atol=ATOL)
    even = np.asarray(
        relative_credit(np.full(2, 3.0), np.ones(2), group[:2], np.zeros(2, int), 1e-6)
    )
    np.testing.assert_array_equal(even, [1.5, 1.5])


def test_levels_that_do_not_ascend_are_refused():
    with pytest.raises(ValueError, match="low and high must ascend in"):
        risk_sensitive(low=0.9, high=0.2)
