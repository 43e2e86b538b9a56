"""RECAP's vectors: row b of the rewards is step b of three objectives."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods.curricula.recap import CellWindows, objective_weights, pushed, window_progress


def outputs(case, hyper):
    losses = 1.1 - golden.inputs(case)["multi_rewards"]
    number = losses.shape[1]
    window, heat = hyper["window"], hyper["temperature"]
    state = CellWindows(jnp.zeros((number, 2 * window)), jnp.zeros(number, jnp.int32))
    steps = []
    for row in losses:
        state = pushed(state, jnp.asarray(row), jnp.ones(number, bool))
        paper = objective_weights(state, heat)
        code = objective_weights(state, heat, hyper["mix"])
        steps.append((*window_progress(state), paper, code, jnp.mean(paper * row)))
    names = ("convergence", "instability", "weights_paper", "weights_code", "loss")
    columns = (np.array(column) for column in zip(*steps, strict=True))
    return {"losses": losses, **dict(zip(names, columns, strict=True))}
