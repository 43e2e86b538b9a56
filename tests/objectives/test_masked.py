"""Masked and group statistics against plain numpy, and their rules for nothing at all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.objectives import (
    effective_sample_size,
    fraction_of,
    group_all_equal,
    group_count,
    group_mean,
    group_others_mean,
    group_spread,
    group_std,
    masked_count,
    masked_max,
    masked_mean,
    masked_min,
    masked_quantile,
    masked_rank,
    masked_std,
    masked_sum,
)

WIDTHS = [1, 31, 32, 33, 64, 65, 200]  # around the blocks in which counts are taken
RTOL = 1e-13  # float64, sums of some 30 terms of one sign or near it
RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal(3.0, 1.0, (6, 7))
MASK = RANDOM.random((6, 7)) < 0.6
HOLES = np.where(MASK, VALUES, np.nan)
GROUP = np.array([7, -2, 7, 900, -2, 7])
REWARD = RANDOM.normal(size=6)


def test_statistics_agree_with_numpy_and_never_see_the_padding():
    def measure(values, mask):
        return {
            "sum": masked_sum(values, mask),
            "rows": masked_sum(values, mask, axis=1),
            "mean": masked_mean(values, mask),
            "std": masked_std(values, mask),
            "bessel": masked_std(values, mask, ddof=1),
            "min": masked_min(values, mask),
            "max": masked_max(values, mask),
            "count": masked_count(mask),
        }

    found, chosen = jax.jit(measure)(array(HOLES, float), array(MASK, bool)), VALUES[MASK]
    wanted = {
        "sum": chosen.sum(),
        "rows": np.where(MASK, VALUES, 0).sum(axis=1),
        "mean": chosen.mean(),
        "std": chosen.std(),
        "bessel": chosen.std(ddof=1),
        "min": chosen.min(),
        "max": chosen.max(),
        "count": chosen.size,
    }
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=RTOL, err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize("width", WIDTHS)
def test_counts_and_ranks_are_exact_at_any_width(width):
    random = np.random.default_rng(width)
    for mask in (random.random((3, width)) < 0.7, np.ones((3, width)), np.zeros((3, width))):
        mask = array(mask, bool)
        np.testing.assert_array_equal(masked_rank(mask), np.cumsum(mask, axis=1))
        for axis in (None, 0, 1):
            np.testing.assert_array_equal(masked_count(mask, axis), np.sum(mask, axis=axis))
    assert masked_rank(mask).dtype == masked_count(mask).dtype == np.int32


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 1 - 0.2, 0.99, 1.0])
def test_quantile_interpolates_as_numpy_does(fraction):
    found = masked_quantile(array(HOLES, float), array(MASK, bool), fraction)
    np.testing.assert_allclose(found, np.quantile(VALUES[MASK], fraction), rtol=RTOL)


def test_statistics_of_no_token_are_zero():
    def measure(values, mask):
        return [
            masked_sum(values, mask),
            masked_mean(values, mask),
            masked_std(values, mask),
            masked_min(values, mask),
            masked_max(values, mask),
            masked_quantile(values, mask, 0.8),
            effective_sample_size(values, mask),
        ]

    nothing = jax.jit(measure)(array(HOLES, float), array(MASK & False, bool))
    assert np.array_equal(nothing, np.zeros(7))


def test_deviation_of_large_close_values_survives_in_float32():
    values = np.float32(10_000) + np.arange(8, dtype=np.float32)
    found = masked_std(array(values, np.float32), array(np.ones(8), bool))
    np.testing.assert_allclose(found, np.arange(8).std(), rtol=1e-6)  # float32, two passes


def test_bool_values_are_counted():
    values, mask = array([True, False, True], bool), array([True, True, False], bool)
    assert masked_mean(values, mask) == 0.5


@pytest.mark.parametrize("fraction, count", [(0.0075, 400), (0.05, 20), (2e-4, 5000), (0.29, 100)])
def test_whole_shares_are_not_lost_to_rounding(fraction, count):
    exact = round(fraction * count)
    assert fraction_of(fraction, array(count, np.int32)) == exact
    assert fraction_of(fraction, array(count - 1, np.int32)) == exact - 1


def test_effective_sample_size_is_that_of_kish():
    mask, ratio = array(MASK, bool), np.exp(VALUES)
    chosen = ratio[MASK]
    wanted = chosen.sum() ** 2 / (chosen**2).sum() / chosen.size
    found = jax.jit(effective_sample_size)(array(ratio, float), mask)
    np.testing.assert_allclose(found, wanted, rtol=RTOL)


def test_effective_sample_size_of_huge_ratios_does_not_overflow():
    ratio = array([1e30, 1e30, 0.0, 0.0], np.float32)
    assert effective_sample_size(ratio, array(np.ones(4), bool)) == 0.5


def test_group_statistics_agree_with_a_loop_over_groups_with_any_ids():
    def measure(values, group):
        return (
            group_count(group),
            group_mean(values, group),
            group_std(values, group),
            group_others_mean(values, group),
            group_spread(values, group),
            group_all_equal(values, group),
        )

    found = jax.jit(measure)(array(REWARD, float), array(GROUP, np.int32))
    for row, (group, own) in enumerate(zip(GROUP, REWARD, strict=True)):
        members = REWARD[group == GROUP]
        alone = len(members) == 1
        wanted = (
            len(members),
            members.mean(),
            0.0 if alone else members.std(ddof=1),
            own if alone else (members.sum() - own) / (len(members) - 1),
            np.ptp(members),
            alone,
        )
        for values, value in zip(found, wanted, strict=True):
            np.testing.assert_allclose(values[row], value, rtol=RTOL)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rewards_deviate_by_exactly_zero(dtype):
    def measure(values, group):
        return (
            group_mean(values, group),
            group_others_mean(values, group),
            group_std(values, group),
        )

    reward = array(np.full(7, 0.1), dtype)  # seven times 0.1 sums to no multiple of 0.1
    mean, others, deviation = jax.jit(measure)(reward, array(np.zeros(7), np.int32))
    assert jnp.all(mean == reward)
    assert jnp.all(others == reward)
    assert jnp.all(deviation == 0)
