"""GPG: plain policy gradient on centered rewards, rescaled to the groups that carry a gradient."""

import numpy as np
from one_transform import signals, with_reward

from rlvr_jax.methods.baselines.gpg import amplify_informative
from rlvr_jax.objectives.advantages.group_relative import group_centered


def test_a_batch_without_signal_is_not_amplified():
    found = signals(group_centered(), amplify_informative(), batch=with_reward(np.ones(12)))
    assert not np.asarray(found.advantage).any()
