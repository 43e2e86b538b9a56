"""MedGRPO's vectors: the quartiles of one reward map another."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.medgrpo import cell_quartiles, logistic_of_quartiles
from rlvr_jax.types import Recipe, replace

LEFT_OUT = {}


def outputs(case, hyper):
    batch, data = golden.rollouts(case), golden.inputs(case)
    cell = jnp.asarray(np.arange(len(batch.group)) // int(data["group_size"]) % 2, jnp.int32)
    low, middle, high = cell_quartiles(batch.component_rewards[:, 2], cell)
    soft = golden.rollouts(case, soft=True).outcome
    reward = logistic_of_quartiles(soft, low, middle, high, hyper["k"], hyper["iqr_floor"])
    own = recipe("medgrpo", epsilon=hyper["eps"]).objective
    done = golden.evaluate(Recipe(own), case, batch=replace(batch, reward=reward))
    return {
        "dataset": cell,
        "p25": low,
        "p50": middle,
        "p75": high,
        "reward": reward,
        "advantages": done.signals.advantage,
    }
