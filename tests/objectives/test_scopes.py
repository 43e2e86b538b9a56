"""Statistics over batch, responses and groups against plain numpy, with holes in the mask."""

import functools

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.entropy.hapo import scoped_nearest_quantile
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.scopes import (
    above_quantile,
    min_max,
    scoped_count,
    scoped_max,
    scoped_mean,
    scoped_min,
    scoped_quantile,
    scoped_std,
    within_batch,
    within_group,
    within_response,
    z_score,
)

RTOL = 1e-12  # float64, sums of some 30 terms
RANDOM = np.random.default_rng(3)
VALUES = RANDOM.normal(3.0, 1.0, (6, 7))
MASK = RANDOM.random((6, 7)) < 0.6
MASK[4] = False
GROUP = np.array([7, -2, 7, 900, 11, -2])
BATCH = golden.rollouts("b").replace(group=array(GROUP, np.int32))
SETS = {within_batch: np.zeros(6, int), within_response: np.arange(6), within_group: GROUP}
STATISTICS = {
    scoped_mean: np.mean,
    scoped_std: np.std,
    functools.partial(scoped_std, ddof=1): functools.partial(np.std, ddof=1),
    scoped_min: np.min,
    scoped_max: np.max,
    functools.partial(scoped_quantile, fraction=0.3): functools.partial(np.quantile, q=0.3),
    functools.partial(scoped_nearest_quantile, fraction=0.3): (
        lambda chosen: np.sort(chosen)[round(0.3 * (chosen.size - 1))]
    ),
}

every_scope = pytest.mark.parametrize("scope", SETS, ids=lambda scope: scope.__name__)


def by_set(scope, function):
    """What numpy gives the set of each row, [6, 1]; 0 of nothing."""
    names = SETS[scope]
    chosen = [VALUES[names == name][MASK[names == name]] for name in names]
    return np.array([[function(values) if values.size else 0.0] for values in chosen])


@every_scope
def test_statistics_agree_with_numpy_and_never_see_what_is_off_the_mask(scope):
    def measure(values, mask):
        sets = scope(BATCH)
        own = [statistic(values, mask, sets=sets) for statistic in STATISTICS]
        return [scoped_count(mask, sets), *own]

    holes = np.where(MASK, VALUES, np.nan)
    counts, *found = jax.jit(measure)(array(holes, float), array(MASK, bool))
    found = [np.broadcast_to(values, (6, 1)) for values in (counts, *found)]
    for values, reference in zip(found, (np.size, *STATISTICS.values()), strict=True):
        np.testing.assert_allclose(values, by_set(scope, reference), rtol=RTOL)


@pytest.mark.thorough
@every_scope
def test_scores_agree_with_numpy_and_are_0_off_the_mask(scope):
    values, mask, sets = array(VALUES, float), array(MASK, bool), scope(BATCH)
    mean, std = by_set(scope, np.mean), by_set(scope, lambda x: np.std(x, ddof=1))
    low, high = by_set(scope, np.min), by_set(scope, np.max)
    wanted = np.where(MASK, (VALUES - mean) / (std + 0.5), 0)
    np.testing.assert_allclose(z_score(values, mask, sets, 1, 0.5), wanted, rtol=1e-9)
    wanted = np.where(MASK, (VALUES - low) / (high - low + 0.5), 0)
    np.testing.assert_allclose(min_max(values, mask, sets, 0.5), wanted, rtol=RTOL)
    wanted = MASK & (by_set(scope, lambda x: np.quantile(x, 0.3)) < VALUES)
    np.testing.assert_array_equal(above_quantile(values, mask, sets, 0.3), wanted)


@pytest.mark.thorough
@every_scope
def test_equal_values_score_exactly_0_and_none_is_above_their_quantile(scope):
    equal, mask, sets = jnp.full((6, 7), 0.1), array(MASK, bool), scope(BATCH)
    assert not z_score(equal, mask, sets, epsilon=1e-30).any()
    assert not above_quantile(equal, mask, sets, 0.8).any()
    assert not min_max(equal, mask, sets, epsilon=1e-30).any()
    half = min_max(equal, mask, sets, epsilon=1e-30, equal=0.5)
    np.testing.assert_array_equal(half, np.where(MASK, 0.5, 0))


@every_scope
def test_the_largest_of_each_set_are_chosen(scope):
    sets, mask = scope(BATCH), array(MASK, bool)

    def count(chosen):
        return scoped_count(chosen, sets)

    rows = jnp.arange(6, dtype=jnp.int32)
    chosen = masked_top_k(array(VALUES, float), mask, jnp.minimum(count(mask), 2), rows, count)
    second = by_set(scope, lambda x: np.sort(x)[-min(2, x.size)])
    np.testing.assert_array_equal(chosen, MASK & (second <= VALUES))
