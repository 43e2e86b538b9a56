"""MedGRPO's vectors: the quartiles of one reward map another."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.rewards.medgrpo import QuartileState, by_start_quartiles
from rlvr_jax.types import Recipe


def outputs(case, hyper):
    batch, data = golden.rollouts(case), golden.inputs(case)
    cell = jnp.asarray(np.arange(len(batch.group)) // int(data["group_size"]) % 2, jnp.int32)
    soft = golden.rollouts(case, soft=True).outcome
    shaping = by_start_quartiles(0, cells=2, slope=hyper["k"], least=hyper["iqr_floor"])
    state = QuartileState(np.zeros((2, 3)), np.zeros(2, bool))  # float64, unlike that of a run

    def shaped(column, state):
        rows = batch.replace(cell=cell, component_rewards=column[:, None])
        return shaping.apply(rows, state, None)[:2]

    _, state = shaped(batch.records["component_rewards"][:, 2], state)
    reward, _ = shaped(soft, state)
    low, middle, high = state.quartiles[np.asarray(cell)].T
    own = recipe("medgrpo", epsilon=hyper["eps"]).objective
    done = golden.evaluate(Recipe(own), case, batch=batch.replace(reward=reward))
    return {
        "dataset": cell,
        "p25": low,
        "p50": middle,
        "p75": high,
        "reward": reward,
        "advantages": done.signals.advantage,
    }
