"""The vectors of the length rewards."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods.rewards.length_rewards import (
    length_cosine,
    length_excess,
    short_of_group,
    standardized_length,
)
from rlvr_jax.objectives import outcome_is_right, overlong_excess

LEFT_OUT = {}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    longest = hyper["max_len"] or batch.mask.shape[1]  # 0 stands for the width of the case
    # The vectors name the ends by length L first.
    right, wrong = hyper["right"][::-1], hyper["wrong"]
    length = np.asarray(batch.length, float)
    good = outcome_is_right(batch.outcome)
    return {
        "length": batch.length,
        "cosine": length_cosine(longest, tuple(right), tuple(wrong))(batch),
        "kimi": short_of_group()(batch),
        "overlong": overlong_excess(longest, hyper["cache"], hyper["factor"])(batch),
        "linear_excess": length_excess(hyper["target"], hyper["rate"])(batch),
        "length_z_correct": standardized_length(length, good, batch.group, hyper["eps"]),
        "truncated": batch.truncated,
    }
