"""NGRPO: every group gets a virtual perfect response, so that all-incorrect groups teach."""

import numpy as np
from one_transform import BATCH, signals, with_reward

from rlvr_jax.methods.baselines.ngrpo import drop_perfect_groups
from rlvr_jax.objectives.advantages.group_relative import group_centered


def test_only_groups_that_are_perfect_leave_the_mask():
    reward = np.array([1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    found = signals(group_centered(), drop_perfect_groups(1.0), batch=with_reward(reward))
    kept = np.asarray(BATCH.mask) & (np.arange(12) >= 4)[:, None]
    np.testing.assert_array_equal(found.mask, kept)
