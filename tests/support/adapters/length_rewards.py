"""The vectors of the length rewards."""

import golden_vectors as golden

from rlvr_jax.experience import overlong_excess
from rlvr_jax.methods.rewards.length_rewards import length_cosine, length_excess, short_of_group

LEFT_OUT = {"length_z_correct": "a reward that the method does not offer"}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    longest = hyper["max_len"] or batch.mask.shape[1]  # 0 stands for the width of the case
    return {
        "length": batch.length,
        "cosine": length_cosine(longest)(batch),
        "kimi": short_of_group()(batch),
        "overlong": overlong_excess(longest, hyper["cache"], hyper["factor"])(batch),
        "linear_excess": length_excess(hyper["target"], hyper["rate"])(batch),
        "truncated": batch.truncated,
    }
