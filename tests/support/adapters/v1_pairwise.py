"""V_1's vectors: a formula of the places and the graded rewards rates."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods.judges.arena_rl import win_rates
from rlvr_jax.methods.judges.v1_pairwise import rating_rewards
from rlvr_jax.objectives import first_of_largest, play, round_robin

LEFT_OUT = {}


def outputs(case, hyper):
    batch, size = golden.rollouts(case), int(golden.inputs(case)["group_size"])
    quality = np.asarray(golden.rollouts(case, soft=True).outcome).reshape(-1, size)
    right = np.asarray(batch.outcome).reshape(-1, size) > 0.5
    place = np.arange(size)
    wave = 0.5 * np.sin(place[:, None] + 2 * place[None])
    found = {"rating": [], "pair_used": [], "verifier_reward": [], "win_rate": []}
    for own, good in zip(quality, right, strict=True):
        inside = 4 * (own[:, None] - own[None]) + wave
        ratings = np.round(1 + 9 / (1 + np.exp(-inside)))

        def compare(pairs, ratings=ratings):
            return np.array([[ratings[i, j], ratings[j, i]] for i, j in pairs])

        reward, used = rating_rewards(ratings, good, hyper["tolerance"])
        alone = np.eye(size, dtype=bool)
        found["rating"].append(np.where(alone, 0, ratings))
        found["pair_used"].append(used)
        found["verifier_reward"].append(reward)
        rounds = play(size, round_robin, compare)
        found["win_rate"].append(win_rates(size, rounds, hyper["floor"]))
    arrays = {name: np.concatenate(values) for name, values in found.items()}
    rate = arrays["win_rate"]
    return {**arrays, "picked": first_of_largest(rate, batch.group, batch.rollout_id)}
