"""Pairs of rollouts, and losses on them."""

import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.objectives.regularizers.preferences import (
    correct_incorrect_pairs,
    implicit_reward_loss,
)

RANDOM = np.random.default_rng(0)


def by_listing(correct, group, rollout_id, where):
    partner = np.full(len(correct), -1)
    for name in set(group):
        own = where & (group == name)
        kinds = [
            sorted(np.flatnonzero(own & (correct == kind)), key=lambda i: rollout_id[i])
            for kind in (True, False)
        ]
        for better, worse in zip(*kinds, strict=False):
            partner[better], partner[worse] = worse, better
    return partner


def test_pairs_agree_with_lists_for_ragged_groups_in_any_order():
    for _ in range(20):
        correct = RANDOM.random(13) < 0.5
        group, rollout_id = RANDOM.integers(-3, 3, 13), RANDOM.permutation(13) * 5
        where = RANDOM.random(13) < 0.8
        found = correct_incorrect_pairs(
            array(correct, bool),
            array(group, np.int32),
            array(rollout_id, np.int32),
            array(where, bool),
        )
        np.testing.assert_array_equal(found, by_listing(correct, group, rollout_id, where))


def test_a_scale_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match=r"implicit_reward_loss: scale must be positive, got 0"):
        implicit_reward_loss(0)
