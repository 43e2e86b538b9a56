import numpy as np

from rlvr_jax.methods.rewards.longrlvr import grounded
from rlvr_jax.types import Rollouts
from rlvr_jax.verifiers.texts import longrlvr


def verdict(response, gold):
    ids, answer = longrlvr.parse(response)
    if ids is None or answer is None:
        return {"ids": None, "precision": None, "recall": None, "f_beta": None, "reward": 0}
    parts = longrlvr.precision_and_recall(ids, gold["reference"])
    row = Rollouts.of_responses(
        np.zeros((1, 1), int),
        np.ones((1, 1), bool),
        np.array([gold["right"]], np.float32),
        np.zeros(1, int),
        component_rewards=np.array([parts], np.float32),
    )
    reward, _, metrics = grounded(0, 1).apply(row, (), None)
    names = ("ids", "precision", "recall", "f_beta", "reward")
    values = (ids, *parts, float(metrics["reward/f_score"]), float(reward[0]))
    return dict(zip(names, values, strict=True))
