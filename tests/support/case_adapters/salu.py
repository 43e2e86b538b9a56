import math

import numpy as np

from rlvr_jax.methods.rewards.salu import confident_abstention
from rlvr_jax.types import Rollouts


def verdict(given, gold):
    del gold
    sure = given["confidence"]
    columns = [given["answerable"], given["abstained"], math.nan if sure in (None, "nan") else sure]
    row = Rollouts.of_responses(
        np.zeros((1, 1), int),
        np.ones((1, 1), bool),
        np.array([bool(given["right"])], np.float32),
        np.zeros(1, int),
        component_rewards=np.array([columns], np.float32),
    )
    (reward,) = confident_abstention()(row)
    return None if np.isnan(reward) else float(reward)
