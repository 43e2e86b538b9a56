"""DRIVE's vectors: the pool of each phase."""

import math

import golden_vectors as golden
import numpy as np
from adapters.common import per_group

from rlvr_jax.methods.curricula.drive import hardest


def outputs(case, hyper):
    data = golden.inputs(case)
    size = int(data["group_size"])
    later = np.clip(data["values"][:, 1:3].T, 0, 1)
    rates = [column.reshape(-1, size).mean(axis=1) for column in (data["soft_rewards"], *later)]
    pool = np.ones(len(per_group(data["rewards"], case)), bool)
    found = {}
    for phase, (fraction, rate) in enumerate(zip(hyper["fractions"], rates, strict=True)):
        pool = hardest(pool, rate, math.ceil(fraction * len(pool)))
        found[f"rate_{phase}"] = np.repeat(rate, size)
        found[f"pool_{phase}"] = np.repeat(pool, size)
    return found
