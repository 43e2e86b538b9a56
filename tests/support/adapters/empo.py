"""EMPO's vectors; one id stands for a response without an answer."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.experience import answer_clusters
from rlvr_jax.experience.rewards.consensus import agreement, disagreement
from rlvr_jax.methods import recipe

LEFT_OUT = {"vote": "pays all answers of a tie, `agreement(vote=True)` the first of them"}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    answer = np.asarray(batch.records["answer"])
    lacking = answer == hyper["empty_id"]
    answer = np.where(lacking, -1 - np.arange(len(answer)), answer).astype(np.int32)
    batch = batch.replace(answer=answer)
    clusters = answer_clusters(answer, batch.group)
    done = golden.evaluate(recipe("empo", epsilon=hyper["eps"]), case, batch=batch)
    return {
        "cluster_id": in_order(np.asarray(clusters), int(golden.inputs(case)["group_size"])),
        "freq": done.batch.reward,
        "entropy": disagreement(clusters, batch.group),
        "reward_trl": agreement(missing=0.0, parted=0.0)(batch),
        "reward_conf": agreement(least=hyper["conf_floor"])(batch),
        "advantages": done.signals.advantage,
    }


def in_order(clusters, size):
    """Clusters numbered in the order in which they come first in their group."""
    groups = clusters.reshape(-1, size).tolist()
    return np.concatenate([[list(dict.fromkeys(row)).index(c) for c in row] for row in groups])
