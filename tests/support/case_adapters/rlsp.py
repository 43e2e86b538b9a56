import math

import numpy as np

from rlvr_jax.methods.rewards.rlsp import explored, steady_reasoning

OUTCOMES = {"right": 1.0, "wrong": 0.0, "none": -0.5}


def verdict(given, gold):
    cap, clip = (10.0, None) if gold["form"] == "ours" else (None, 10.0)
    length, outcome, effort = (
        np.array([number], np.float32)
        for number in (
            given["L"],
            OUTCOMES[given["answer"]],
            math.nan if given["g"] is None else given["g"],
        )
    )
    exploration = steady_reasoning(length, gold["C"], cap)
    return float(explored(outcome, exploration, effort, gold["w"], clip)[0])
