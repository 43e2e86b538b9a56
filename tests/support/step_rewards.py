"""Rollouts with scores of steps."""

import numpy as np
from golden_vectors import array

from rlvr_jax.types import Rollouts


def rollouts(scores, outcome, width=None):
    """Each score is a step of two tokens; three tokens of no step stand behind them."""
    width = width or 2 * max(map(len, scores)) + 3
    rows = len(scores)
    step = np.full((rows, width), -1)
    reward = np.zeros((rows, width))
    for row, own in enumerate(scores):
        for place, score in enumerate(own):
            step[row, 2 * place : 2 * place + 2] = place
            reward[row, 2 * place + 1] = score
    return Rollouts.of_responses(
        tokens=array(np.zeros((rows, width)), np.int32),
        mask=array(np.ones((rows, width)), bool),
        reward=array(outcome, np.float64),
        group=array(np.zeros(rows), np.int32),
        step=array(step, np.int32),
        process_reward=array(reward, np.float64),
    )
