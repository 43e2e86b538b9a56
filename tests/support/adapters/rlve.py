"""RLVE's vectors: the levels of two environments over as many rounds as there are columns."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.curricula.rlve import Levels, counted, raised

LEFT_OUT = {"lower_difficulty": "max(0, h - w + 1), inside `adaptive_levels`"}
RIGHT_ABOVE = 0.05  # of the values, in the vectors
NO_LAST = np.full(2, 1000)


def outputs(case, hyper):
    values = golden.inputs(case)["values"]
    size = int(golden.inputs(case)["group_size"])
    group = np.arange(len(values)) // size
    environment = group % 2
    start = np.full(2, hyper["start"], np.int32)
    levels = Levels(start, np.zeros(2, np.int32), np.zeros(2, np.int32))
    rounds = []
    for number in range(values.shape[1]):
        level = np.maximum(0, levels.highest[environment] - (group + number) % 2)
        levels = counted(levels, environment, level, values[:, number] > RIGHT_ABOVE)
        count, accuracy = levels.answers, levels.accuracy
        levels = raised(levels, hyper["min_prompts"] * size, hyper["threshold"], NO_LAST)
        rounds.append((levels.highest, count, accuracy))
    upper, count, accuracy = (np.array(column) for column in zip(*rounds, strict=True))
    shaped = golden.prepared(
        recipe("rlve", exponent=hyper["beta"]), golden.rollouts(case, True)
    ).reward
    return {
        "upper_difficulty": upper,
        "count": count,
        "mean_accuracy": accuracy,
        "shaped_reward": jnp.asarray(shaped),
    }
