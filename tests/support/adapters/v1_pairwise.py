"""V_1's vectors: a formula of the places and the graded rewards rates."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods.judges.v1_pairwise import LEAST, MOST, rating_reward

LEFT_OUT = {
    "pair_used": "by the random choice of pairs, in tests/methods/test_v1_pairwise.py",
    **dict.fromkeys(("win_rate", "picked"), "the tournament at test time is left out"),
}


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    quality = np.asarray(golden.rollouts(case, soft=True).outcome).reshape(-1, size)
    correct = np.asarray(batch.outcome).reshape(-1, size) > 0.5
    place = np.arange(size)
    wave = 0.5 * np.sin(place[:, None] + 2 * place[None])
    inside = 4 * (quality[:, :, None] - quality[:, None]) + wave
    ratings = np.where(np.eye(size, dtype=bool), 0, np.round(1 + 9 / (1 + np.exp(-inside))))
    reward = np.zeros_like(ratings)
    for group, first, second in np.ndindex(ratings.shape):
        truth = bool(correct[group, first]), bool(correct[group, second])
        if first != second and any(truth):
            # The second rating is far from the truth: only the first one is paid, half.
            words = f"{int(ratings[group, first, second])}, {LEAST if truth[1] else MOST}"
            reward[group, first, second] = 2 * rating_reward(words, truth, hyper["tolerance"])
    return {"rating": ratings.reshape(-1, size), "verifier_reward": reward.reshape(-1, size)}
