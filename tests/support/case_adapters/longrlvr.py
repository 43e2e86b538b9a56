import numpy as np

from rlvr_jax.methods.rewards.longrlvr import f_score, grounded_reward
from rlvr_jax.verifiers.texts import longrlvr

BETA, SHARE = 2.0, 0.1


def verdict(response, gold):
    cited = longrlvr.parse(response)
    if cited.ids is None or cited.answer is None:
        return {"ids": None, "precision": None, "recall": None, "f_beta": None, "reward": 0}
    parts = longrlvr.precision_and_recall(cited.ids, gold["reference"])
    score = f_score(*(np.array([part], np.float32) for part in parts), BETA)
    reward = grounded_reward(np.array([gold["right"]], np.float32), score, SHARE)
    names = ("ids", "precision", "recall", "f_beta", "reward")
    values = (cited.ids, *parts, float(score[0]), float(reward[0]))
    return dict(zip(names, values, strict=True))
