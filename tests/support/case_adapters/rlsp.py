import math

import numpy as np

from rlvr_jax.methods.rewards.rlsp import decoupled_exploration
from rlvr_jax.types import Rollouts, replace


def verdict(given, gold):
    cap, clip = (10.0, None) if gold["form"] == "ours" else (None, 10.0)
    row = Rollouts.of_responses(
        np.zeros((1, 1), int),
        np.ones((1, 1), bool),
        np.array([given["answer"] == "right"], np.float32),
        np.zeros(1, int),
        component_rewards=np.array([[math.nan if given["g"] is None else given["g"]]], np.float32),
        answer=np.array([-1 if given["answer"] == "none" else 0], np.int32),
    )
    row = replace(row, length=np.array([given["L"]], np.int32))
    return float(decoupled_exploration(gold["C"], cap, gold["w"], 0, clip)(row)[0])
