"""Exact counts, ties, and independence of the layout."""

import jax
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.objectives import masked_top_k, random_choice

RANDOM = np.random.default_rng(1)
TOP_K, DRAW = jax.jit(masked_top_k), jax.jit(random_choice)
ROWS, WIDTH = 5, 6


def by_sorting(values, eligible, k, rollout_id):
    """The k largest, ties by rollout_id and position."""
    places = [(-values[row, t], rollout_id[row], t, row) for row, t in np.argwhere(eligible)]
    chosen = np.zeros_like(eligible)
    for _, _, t, row in sorted(places)[:k]:
        chosen[row, t] = True
    return chosen


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [3, 1000], ids=["ties", "few ties"])
def test_top_k_agrees_with_sorting_for_every_k(dtype, levels):
    values = (RANDOM.integers(-levels, levels, (ROWS, WIDTH)) / 7).astype(dtype)
    eligible = RANDOM.random((ROWS, WIDTH)) < 0.7
    rollout_id = np.array([30, -4, 12, 0, 7])
    for k in range(ROWS * WIDTH + 2):
        found = TOP_K(
            array(values, dtype),
            array(eligible, bool),
            array(k, np.int32),
            array(rollout_id, np.int32),
        )
        np.testing.assert_array_equal(found, by_sorting(values, eligible, k, rollout_id))


def test_zeros_of_both_signs_tie():
    values = array([[0.0, -0.0, 0.0]], np.float32)
    found = masked_top_k(values, array(np.ones((1, 3)), bool), 2, array([0], np.int32))
    np.testing.assert_array_equal(found, [[True, True, False]])


def test_infinities_are_ordered():
    values = array([[-np.inf, 1.0, np.inf]], np.float64)
    found = masked_top_k(values, array(np.ones((1, 3)), bool), 2, array([0], np.int32))
    np.testing.assert_array_equal(found, [[False, True, True]])


def draw(eligible, k, seed, rollout_id):
    sampled = DRAW(
        array(eligible, bool), array(k, np.int32), jax.random.key(seed), array(rollout_id, np.int32)
    )
    return np.asarray(sampled)


def test_draw_takes_exactly_k_eligible_tokens():
    eligible = RANDOM.random((ROWS, WIDTH)) < 0.5
    for k in (0, 1, 5, eligible.sum(), eligible.sum() + 3):
        chosen = draw(eligible, k, 0, np.arange(ROWS))
        assert chosen.sum() == min(k, eligible.sum())
        assert not (chosen & ~eligible).any()


def test_draw_does_not_depend_on_the_order_of_rows_or_the_padding():
    eligible = RANDOM.random((ROWS, WIDTH)) < 0.8
    chosen = draw(eligible, 7, 3, np.arange(ROWS))
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_array_equal(draw(eligible[order], 7, 3, order), chosen[order])
    wider = np.pad(eligible, ((0, 0), (0, 4)))
    np.testing.assert_array_equal(draw(wider, 7, 3, np.arange(ROWS))[:, :WIDTH], chosen)


def test_every_eligible_token_is_drawn_equally_often():
    eligible = np.ones((ROWS, WIDTH), bool)
    eligible[2] = False
    num_draws, k = 600, 6
    keys = jax.random.split(jax.random.key(5), num_draws)
    many = jax.vmap(random_choice, (None, None, 0, None))
    chosen = jax.jit(many)(
        array(eligible, bool), array(k, np.int32), keys, array(np.arange(ROWS), np.int32)
    )
    counts = np.asarray(chosen).sum(axis=0)[eligible]
    p = k / eligible.sum()
    deviation = np.sqrt(num_draws * p * (1 - p))
    assert np.abs(counts - num_draws * p).max() < 4.5 * deviation  # 24 tokens: 1 in 6000 seeds
    assert len({row.tobytes() for row in np.asarray(chosen)}) > num_draws // 2
