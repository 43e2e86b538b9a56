"""Variance-aware sampling: prompts whose outcomes and texts vary are sampled more often."""

import itertools

import numpy as np
import pytest
from answering import Right, numbers_of

from rlvr_jax.experience import experience
from rlvr_jax.experience.curricula.picks import mixed
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.mmr1_vas import (
    as_they_are,
    distinct_ngrams,
    edit_distance,
    min_max,
    refreshed,
    variance_promotion,
)


def test_ratings_and_training_score_prompts_and_weights_change_at_a_refresh_alone():
    chain = experience(variance_promotion(0.5, 1.0, 0.0, refresh=3, rated=4, rating_samples=2))
    actor = Right(lambda number: 0.5 * (number % 2))
    found = numpy_actor.walk(chain, actor, steps=7)
    told = [told for _, told, _ in found]
    assert [t["rated"] for t in told] == [4, 0, 0, 4, 0, 0, 4]
    assert [t["refreshes"] for t in told] == [1, 1, 1, 2, 2, 2, 3]
    # Of four prompts of a step, half are sampled by weight once there are weights.
    assert [t["weighted_prompts"] for t in told] == [0, 2, 2, 2, 2, 2, 2]
    weights = [state["variance_promotion"].weight for _, _, state in found]
    changed = [np.any(one != two) for one, two in itertools.pairwise(weights)]
    assert changed[2] and not np.any([changed[step] for step in (0, 1, 3, 4)])
    for collected, _, state in found:
        rated = [part for part in collected.seen if part.requests[0].rating]
        assert all(len(rows) == 2 for part in rated for rows in part.groups)
        assert len(collected.batch) == 16 and not any(a.rating for a in collected.batch.requests)
        score = state["variance_promotion"].score
        known = ~np.isnan(score)
        # P (1 - P) is a quarter for odd prompts and 0 for even ones.
        np.testing.assert_array_equal(score[known], np.where(np.arange(12) % 2, 0.25, 0)[known])
    assert told[0]["scored_fraction"] >= 6 / 12 and told[-1]["scored_fraction"] > 0.9
    # Half of a late batch is drawn by weight: prompts that vary.
    late = np.array([numbers_of(collected)[:8] for collected, _, _ in found[4:]])
    last = weights[3]
    assert np.all(last[late] > 0)


def test_prompts_without_a_score_have_the_mean_of_the_others():
    score = np.array([0.2, np.nan, 0.1])
    np.testing.assert_allclose(refreshed(np.zeros(3), score, as_they_are, 0.0), [0.2, 0.15, 0.1])
    np.testing.assert_allclose(
        refreshed(np.ones(3), score, min_max, 0.5), [1, 0.75, 0.5], rtol=1e-6
    )
    nothing = np.full(3, np.nan)
    np.testing.assert_array_equal(refreshed(np.zeros(3), nothing, min_max, 0.0), np.zeros(3))
    np.testing.assert_array_equal(mixed(min_max(np.full(3, 0.2)), 0.0), np.full(3, 1 / 3))


def test_answers_are_compared_on_the_mask_alone():
    tokens = np.array([[1, 2, 3, 9, 9], [1, 2, 9, 3, 4]])
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 1]], bool)
    # 123, 123, 234: two of three differ.
    assert distinct_ngrams(tokens, mask) == pytest.approx(2 / 3)
    assert distinct_ngrams(tokens, mask & False) == 0
    assert edit_distance(tokens, mask) == 1
    assert edit_distance(tokens[:1], mask[:1]) == 0


@pytest.mark.parametrize("seed", range(5))
def test_edit_distance_agrees_with_the_recurrence(seed):
    random = np.random.default_rng(seed)
    one, two = (random.integers(0, 3, 7) for _ in range(2))
    lengths = random.integers(0, 8, 2)
    mask = np.arange(7)[None] < lengths[:, None]
    table = np.zeros((lengths[0] + 1, lengths[1] + 1))
    table[:, 0], table[0] = np.arange(lengths[0] + 1), np.arange(lengths[1] + 1)
    for i in range(lengths[0]):
        for j in range(lengths[1]):
            swapped = table[i, j] + (one[i] != two[j])
            table[i + 1, j + 1] = min(table[i, j + 1] + 1, table[i + 1, j] + 1, swapped)
    assert edit_distance(np.stack([one, two]), mask) == table[-1, -1]
