"""NSR, PSR and W-REINFORCE: train on incorrect responses, on correct ones, or on both unequally."""

import numpy as np
import pytest
from one_transform import BATCH, signals, with_reward

from rlvr_jax.methods.baselines.nsr import drop_neutral_rollouts, signed_by_outcome


def test_outcomes_that_are_neither_right_nor_wrong_are_dropped():
    reward = np.array([1, 0, 0.5] * 4)
    found = signals(signed_by_outcome(0.1, 1.0), drop_neutral_rollouts(), batch=with_reward(reward))
    push = np.array([0.1, -1.0, 0.0] * 4)[:, None]
    np.testing.assert_array_equal(found.advantage, np.where(BATCH.mask, push, 0))
    np.testing.assert_array_equal(found.mask, np.asarray(BATCH.mask) & (push != 0))
    with pytest.raises(ValueError, match="correct and incorrect must not both be 0"):
        signed_by_outcome(0.0, 0.0)
