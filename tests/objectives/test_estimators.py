"""Edges of the advantage estimators and of the transforms that act on their results."""

import numpy as np
import pytest
from one_transform import BATCH, signals, with_reward

from rlvr_jax.objectives.advantages.group_relative import plain_reward, relative_to
from rlvr_jax.objectives.advantages.whitening import whitened
from rlvr_jax.objectives.statistics.groups import batch_mean

ATOL = 1e-14  # float64, a handful of operations on numbers of order one


def test_whitened_advantages_have_mean_0_and_variance_1_over_the_tokens():
    found = np.asarray(signals(whitened(plain_reward())).advantage)[np.asarray(BATCH.mask)]
    np.testing.assert_allclose([found.mean(), found.std()], [0, 1], atol=ATOL)


def test_equal_advantages_are_whitened_to_exactly_0():
    same = with_reward(np.full(12, 0.1))
    for ddof, epsilon, floor in ((0, 0.0, 1e-8), (1, 1e-8, 0.0)):
        found = signals(whitened(plain_reward(), ddof, epsilon, floor), batch=same)
        assert not np.asarray(found.advantage).any()


def test_a_scale_can_be_a_number_and_a_baseline_any_statistic():
    half = signals(relative_to(batch_mean, scale=2.0)).advantage
    np.testing.assert_allclose(2 * half, signals(relative_to(batch_mean)).advantage, atol=ATOL)
    with pytest.raises(ValueError, match="relative_to: scale must be positive, got"):
        relative_to(batch_mean, scale=0.0)
