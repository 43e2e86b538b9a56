"""Bundles of prompts: ragged groups, tracked quantiles, equal scores."""

import jax
import numpy as np
import pytest
from golden_vectors import array, rollouts, spec, stats

from rlvr_jax.methods.exploration.riskpo import (
    TRACKED_LEVELS,
    bundled,
    relative_credit,
    risk_sensitive,
)
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import reinforce

ATOL = 1e-14  # float64, a few operations on numbers of order one
BATCH = rollouts("b", True)
RAGGED = BATCH.replace(group=array([5, 5, 5, 9, 9, 9, 9, 2, 2, 2, 2, 2], np.int32))


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


@pytest.mark.thorough
def test_quantiles_are_those_of_the_first_scores_and_then_move():
    found = bundled(RAGGED, 2)
    scores = np.asarray(found.score)[np.asarray(found.counted)]
    first = np.quantile(scores, TRACKED_LEVELS)
    state = after(1, RAGGED, risk_sensitive(2))[1]["risk_sensitive"]
    np.testing.assert_allclose(state.quantiles, first, atol=ATOL)
    state = after(2, RAGGED, risk_sensitive(2))[1]["risk_sensitive"]
    below = (scores[None] < first[:, None]).mean(axis=1)
    np.testing.assert_allclose(state.quantiles, first + 0.1 * (TRACKED_LEVELS - below), atol=ATOL)


@pytest.mark.thorough
@pytest.mark.parametrize("own_fraction", [0.0, 0.5, 1.0])
def test_quantiles_are_tracked_the_bundles_own_or_between(own_fraction):
    estimator = risk_sensitive(2, own_fraction=own_fraction)
    _, state = after(1, RAGGED, estimator)
    found, _ = after(1, RAGGED, estimator)
    tracked = np.asarray(state["risk_sensitive"].quantiles)[[3, 17]]  # of levels 0.2 and 0.9
    bundle, _, scores, counted = map(np.asarray, bundled(RAGGED, 2))
    for number in (0, 1):
        inside = bundle == number
        score, once = scores[inside], scores[inside & counted]
        own = np.quantile(once, [0.2, 0.9])
        low, high = own_fraction * own + (1 - own_fraction) * tracked
        middle = np.maximum(score - low, 0) - np.maximum(score - high, 0) + low - high
        value = -1.5 * np.maximum(low - score, 0) / (0.2 + 1e-6) + middle / (0.7 + 1e-6)
        wanted = value / 2.5 / (np.std(once, ddof=1) + 1e-6)
        shown = np.asarray(RAGGED.mask)[inside]
        np.testing.assert_allclose(found[inside], np.where(shown, wanted[:, None], 0), atol=ATOL)


@pytest.mark.thorough
def test_equal_scores_give_0_at_first_and_a_bounded_value_later():
    same = BATCH.replace(reward=array(np.full(12, 0.1), np.float64))
    assert not np.asarray(after(0, same, risk_sensitive(2))[0]).any()
    later = np.abs(np.asarray(after(3, same, risk_sensitive(2))[0]))
    assert 0 < later.max() < 0.2  # of the size of the scores
    divided = risk_sensitive(2, min_spread=0.0, max_value=7.0)
    assert np.abs(np.asarray(after(3, same, divided)[0])).max() == 7.0


@pytest.mark.thorough
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
