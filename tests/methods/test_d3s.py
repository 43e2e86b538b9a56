"""Subsets of largest variance, against all subsets."""

import itertools

import jax
import numpy as np
from golden_vectors import array

from rlvr_jax.methods.exploration.d3s import keep_top_scores, most_varied

RANDOM = np.random.default_rng(3)
MOST_VARIED = jax.jit(most_varied)


def chosen(values, group, eligible, k):
    rows = len(values)
    return np.asarray(
        MOST_VARIED(
            array(values, np.float64),
            array(group, np.int32),
            array(eligible, bool),
            array(k, np.int32),
            array(RANDOM.permutation(rows), np.int32),
        )
    )


def test_no_subset_of_a_group_has_a_larger_variance():
    for _ in range(10):
        values, group = RANDOM.normal(size=11), RANDOM.integers(0, 3, 11)
        eligible = RANDOM.random(11) < 0.8
        sizes = np.array([1, 2, 4])
        kept = chosen(values, group, eligible, sizes[group])
        for name in range(3):
            rows = np.flatnonzero((group == name) & eligible)
            size = min(sizes[name], len(rows))
            inside = np.flatnonzero(kept & (group == name))
            assert len(inside) == size and set(inside) <= set(rows)
            best = max(
                (np.var(values[list(s)]) for s in itertools.combinations(rows, size)), default=0.0
            )
            assert size == 0 or np.isclose(np.var(values[inside]), best, rtol=1e-12)


def test_equal_values_are_chosen_from_below():
    kept = chosen(np.zeros(4), np.zeros(4), np.ones(4, bool), np.full(4, 2))
    assert kept.sum() == 2


def test_a_tie_is_decided_alike_wherever_its_group_stands():
    values = np.tile([0.9354143] * 4 + [-0.9354143] * 4, 64)  # of half right, in float32
    group = np.arange(512) // 8
    kept = MOST_VARIED(
        array(values, np.float32),
        array(group, np.int32),
        array(np.ones(512), bool),
        array(np.full(512, 3), np.int32),
        array(np.arange(512), np.int32),
    )
    largest = np.asarray(kept & (values > 0)).reshape(64, 8).sum(axis=1)
    np.testing.assert_array_equal(largest, np.ones(64))


def test_ties_at_the_threshold_stay():
    score = array([[3.0, 1.0, 1.0, 0.0]], np.float64)
    mask = array(np.ones((1, 4)), bool)
    kept = keep_top_scores(score, mask, 0.5, array([0], np.int32))
    np.testing.assert_array_equal(kept, [[True, True, True, False]])


def test_a_whole_product_is_not_rounded_up():
    score = array(np.arange(55.0)[None], np.float64)
    kept = keep_top_scores(score, array(np.ones((1, 55)), bool), 0.2, array([0], np.int32))
    assert np.asarray(kept).sum() == 11


def test_nothing_is_kept_of_nothing():
    empty = array(np.zeros((2, 3)), bool)
    assert not np.asarray(
        keep_top_scores(array(np.ones((2, 3)), np.float64), empty, 0.5, array([0, 1], np.int32))
    ).any()
