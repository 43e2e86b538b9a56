"""FTRL's vectors, on counts made of the inputs."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods.agents.automated_tool_envs import (
    call_f1,
    call_precision,
    call_rate,
    call_rate_precision,
    useful_calls,
)


def outputs(case, hyper):
    del hyper
    batch, data = golden.rollouts(case), golden.inputs(case)
    rows = np.arange(len(batch.group))
    called = data["multi_rewards"][:, 1] == 1
    turns = np.where(data["mask"], data["turn_ids"], -1).max(axis=1) + 1
    calls = np.where(called, turns + rows % 3, 0)
    solved = np.round(calls * data["soft_rewards"])
    # The task's reward of turns without calls: empty, broken tags, with and without the answer.
    unsolved = rows % 3
    otherwise = np.where(data["rewards"] > 0, 1 / (1 + unsolved), np.where(unsolved > 0, 0, 0.5))
    otherwise = np.select([rows % 4 == 0, rows % 4 == 1], [-0.5, -0.3], otherwise)
    columns = np.stack([calls, solved, otherwise], axis=1).astype(float)
    batch = batch.replace(component_rewards=jnp.asarray(columns))
    scores = {
        "f1": call_f1,
        "precision": call_precision,
        "rate": call_rate,
        "pr": call_rate_precision,
    }
    found = {name: useful_calls(score=score)(batch) for name, score in scores.items()}
    return {"calls": calls, "solved": solved, **found}
