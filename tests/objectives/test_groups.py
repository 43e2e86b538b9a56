"""Group statistics over some rows, with weights and with virtual entries, against plain numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.objectives.statistics.groups import (
    batch_mean,
    batch_std,
    group_count,
    group_deviation,
    group_max,
    group_mean,
    group_spread,
    group_std,
    group_sum,
    mean_with_virtual,
    std_with_virtual,
)

RTOL = 1e-13  # float64, sums of a few terms
RANDOM = np.random.default_rng(0)
GROUP = np.array([7, -2, 7, 900, -2, 7, 7, 31])
VALUES = RANDOM.normal(size=8)
WHERE = np.array([1, 1, 0, 1, 0, 1, 1, 0], bool)
WEIGHTS = np.array([1.0, 2.0, 0.0, 3.0, 1.0, 2.0, 5.0, 0.0])


def per_group(function):
    """The function of the row numbers of each group, given back to its rows; 0 of no row."""
    found = np.zeros(8)
    for one in set(GROUP):
        found[one == GROUP] = function(np.flatnonzero(one == GROUP))
    return found


def check(found, function):
    np.testing.assert_allclose(found, per_group(function), rtol=RTOL, atol=1e-15)


def test_rows_that_do_not_count_are_left_out():
    masked = jnp.asarray(np.where(WHERE, VALUES, np.nan))
    check(group_count(GROUP, WHERE), lambda i: WHERE[i].sum())
    check(group_sum(masked, GROUP, WHERE), lambda i: VALUES[i][WHERE[i]].sum())
    check(
        group_mean(masked, GROUP, WHERE),
        lambda i: VALUES[i][WHERE[i]].mean() if WHERE[i].any() else 0,
    )
    check(
        group_std(masked, GROUP, where=WHERE),
        lambda i: VALUES[i][WHERE[i]].std(ddof=1) if WHERE[i].sum() > 1 else 0,
    )
    check(group_max(masked, GROUP, WHERE), lambda i: max(VALUES[i][WHERE[i]], default=0))
    check(
        group_spread(masked, GROUP, WHERE),
        lambda i: np.ptp(VALUES[i][WHERE[i]]) if WHERE[i].any() else 0,
    )


def test_weighted_means_agree_with_numpy():
    check(
        group_mean(jnp.asarray(VALUES), GROUP, weights=jnp.asarray(WEIGHTS)),
        lambda i: np.average(VALUES[i], weights=WEIGHTS[i]) if WEIGHTS[i].any() else 0,
    )


@pytest.mark.parametrize("number", [1, 3])
def test_virtual_entries_join_every_group(number):
    mean, std = mean_with_virtual(1.0, number), std_with_virtual(1.0, number)
    merge_rows = [1.0] * number
    check(mean(jnp.asarray(VALUES), GROUP), lambda i: np.mean([*VALUES[i], *merge_rows]))
    check(std(jnp.asarray(VALUES), GROUP), lambda i: np.std([*VALUES[i], *merge_rows], ddof=1))


def test_the_batch_is_one_group():
    values = jnp.asarray(VALUES)
    np.testing.assert_allclose(batch_mean(values, GROUP), np.full(8, VALUES.mean()), rtol=RTOL)
    np.testing.assert_allclose(batch_std(values, GROUP), np.full(8, VALUES.std(ddof=1)), rtol=RTOL)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_values_are_their_own_mean_to_the_last_bit(dtype):
    group, weights = np.zeros(7, int), np.linspace(0.3, 2.0, 7).astype(dtype)
    values = jnp.asarray(np.full(7, 0.1), dtype)
    mean = mean_with_virtual(float(values[0]), 2)
    std = std_with_virtual(float(values[0]), 2)
    for found in (group_mean(values, group, weights=weights), mean(values, group)):
        np.testing.assert_array_equal(found, values)
    for found in (group_std(values, group), std(values, group), batch_std(values, group)):
        assert not np.asarray(found).any()
    zero = group_deviation(values, group, weights=weights, virtual=(float(values[0]), 2))
    assert not np.asarray(zero).any()


@pytest.mark.parametrize("statistic", [group_deviation, group_std])
def test_rounding_is_small_beside_the_spread_in_any_order(statistic):
    random = np.random.default_rng(1)
    values = (5 + 1e-3 * random.normal(size=24)).astype(np.float32)
    group = np.arange(24) % 3
    wanted = np.asarray(statistic(jnp.asarray(values, float), group))
    for order in (np.arange(24), random.permutation(24)):
        found = np.asarray(statistic(jnp.asarray(values[order]), group[order]))
        assert found.dtype == np.float32
        # A few roundings of numbers of the size of the spread; one of the mean, 5, is 6e-5 of it.
        np.testing.assert_allclose(found, wanted[order], rtol=0, atol=4e-7 * np.ptp(values))


def test_deviations_are_from_the_mean_of_the_rows_that_count():
    def deviation(rows):
        counted = rows[WHERE[rows] & (WEIGHTS[rows] > 0)]
        if not counted.size:
            return VALUES[rows]
        return VALUES[rows] - np.average(VALUES[counted], weights=WEIGHTS[counted])

    found = group_deviation(jnp.asarray(VALUES), GROUP, WHERE, jnp.asarray(WEIGHTS))
    check(found, deviation)
