import math

import numpy as np

from rlvr_jax.methods.rewards.salu import abstention_reward


def verdict(given, gold):
    del gold
    sure = given["confidence"]
    sure = math.nan if sure in (None, "nan") else sure
    flags = (np.array([bool(given[name])]) for name in ("answerable", "abstained", "right"))
    (reward,) = abstention_reward(*flags, np.array([sure], np.float32))
    return None if np.isnan(reward) else float(reward)
