"""ACE: push harder against incorrect responses that training has made more likely."""

import numpy as np
from one_transform import signals

from rlvr_jax.methods.entropy.ace import amplify_confident_errors
from rlvr_jax.objectives.advantages.group_relative import group_centered


def test_right_answers_are_left_alone_however_far_the_policy_has_moved():
    plain = np.asarray(signals(group_centered()).advantage)
    found = np.asarray(signals(group_centered(), amplify_confident_errors(2.0)).advantage)
    np.testing.assert_array_equal(found[plain >= 0], plain[plain >= 0])
    assert (found[plain < 0] < plain[plain < 0]).all() and (plain < 0).any()
