"""LongRLVR's vectors: tokens modulo 6 of the first positions stand for the cited chunks."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.methods.rewards.longrlvr import f_score
from rlvr_jax.objectives import group_all_equal
from rlvr_jax.verifiers.texts.longrlvr import precision_and_recall


def outputs(case, hyper):
    batch = golden.rollouts(case)
    size = int(golden.inputs(case)["group_size"])
    tokens, mask = (np.asarray(x)[:, :4] for x in (batch.tokens, batch.mask))
    found = []
    for row in range(len(tokens)):
        first = row // size % 5
        cited = (tokens[row][mask[row]] % 6).tolist()
        found.append(precision_and_recall(cited, [first, first + 1]))
    precision, recall = jnp.asarray(found, float).T
    form = batch.records["component_rewards"][:, 1]
    batch = batch.replace(component_rewards=jnp.stack([precision, recall, form], axis=1))
    method = recipe_with(hyper, "longrlvr", fraction=hyper["eta"], columns=(0, 1, 2))
    done = golden.evaluate(method, case, batch=batch)
    reward = done.batch.reward
    return {
        "precision": precision,
        "recall": recall,
        "f_beta": f_score(precision, recall, hyper["beta"]),
        "reward": reward,
        "keep": ~group_all_equal(reward, batch.group),
        "advantages": done.signals.advantage,
    }
