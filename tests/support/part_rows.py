"""Rows of two groups, and a reward that counts its calls."""

import numpy as np
from golden_vectors import array

from rlvr_jax.experience import Shaping
from rlvr_jax.types import Rollouts


def rollouts(dtype=np.float64, **records):
    return Rollouts.of_responses(
        tokens=array(np.zeros((4, 3)), np.int32),
        mask=array(np.ones((4, 3)), bool),
        reward=array([1.0, 0.0, 1.0, 0.0], dtype),
        group=array([0, 0, 1, 1], np.int32),
        component_rewards=array([[0.5, 1], [0.25, 0], [1, 1], [np.nan, 0]], dtype),
        **records,
    )


def counted():
    """A reward whose state is the number of its calls."""

    def apply(rollouts, state, moment):
        del moment
        return 0 * rollouts.outcome + float(state), state + 1, {"asked": float(state)}

    return Shaping(apply, init=lambda prompts: np.int32(prompts))
