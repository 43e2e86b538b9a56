"""RLFR's vectors: the hidden state before a token stands for what the flow network predicts."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.rlfr import (
    deviation_penalty,
    flow_score,
    per_response,
    standardized_reward,
    velocity_deviation,
)
from rlvr_jax.objectives import paid_tokens
from rlvr_jax.types import replace

LEFT_OUT = {}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    hidden = jnp.asarray(golden.inputs(case)["hidden"])
    before = jnp.pad(hidden[:, :-1], ((0, 0), (1, 0), (0, 0)))
    deviation = on_mask(velocity_deviation(before, hidden), batch)
    score = flow_score(jnp.asarray(deviation), hyper["timestep"])
    batch = replace(batch, process_reward=score)
    process = deviation_penalty(hyper["threshold"], hyper["topk"])
    outcome = standardized_reward(hyper["eps"])
    method = recipe(
        "rlfr",
        coefficient=hyper["coef"],
        threshold=hyper["threshold"],
        most=hyper["topk"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(method, case, batch=batch)
    return {
        "deviation": deviation,
        "score": score,
        "score_norm": per_response(score, batch.mask),
        "score_kept": -process.of(batch, batch.mask),
        "outcome": outcome(batch),
        "token_rewards": paid_tokens(batch, batch.mask, process, hyper["coef"], outcome),
        "advantages": done.signals.advantage,
    }
