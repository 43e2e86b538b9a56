"""FTRL's vectors, on counts made of the inputs."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods.agents.automated_tool_envs import (
    call_f1,
    call_precision,
    call_rate,
    call_rate_precision,
    turn_without_calls,
    useful_calls,
)
from rlvr_jax.types import replace

LEFT_OUT = {}
TURNS = ("", "<tool_call>", "text", "text")


def outputs(case, hyper):
    del hyper
    batch, data = golden.rollouts(case), golden.inputs(case)
    rows = np.arange(len(batch.group))
    called = data["multi_rewards"][:, 1] == 1
    turns = np.where(data["mask"], data["turn_ids"], -1).max(axis=1) + 1
    calls = np.where(called, turns + rows % 3, 0)
    solved = np.round(calls * data["soft_rewards"])
    otherwise = []
    for row, right in zip(rows.tolist(), data["rewards"].tolist(), strict=True):
        text = TURNS[row % 4]
        # The final answer is "text" where the row is right.
        answer = "text" if right else "other"
        otherwise.append(turn_without_calls(text, answer, row % 3))
    columns = np.stack([calls, solved, otherwise], axis=1).astype(float)
    batch = replace(batch, component_rewards=jnp.asarray(columns))
    scores = {
        "f1": call_f1,
        "precision": call_precision,
        "rate": call_rate,
        "pr": call_rate_precision,
    }
    found = {name: useful_calls(score=score)(batch) for name, score in scores.items()}
    return {"calls": calls, "solved": solved, **found}
