"""RLFR's vectors: the hidden state before a token stands for what the flow network predicts."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import on_mask, recipe_with

from rlvr_jax.methods.credit.rlfr import deviation_penalty, standardized_reward
from rlvr_jax.objectives import paid_tokens

LEFT_OUT = dict.fromkeys(
    ("deviation", "score", "score_norm"), "made by the network; scores that are kept are compared"
)


def outputs(case, hyper):
    batch = golden.rollouts(case)
    hidden = jnp.asarray(golden.inputs(case)["hidden"])
    before = jnp.pad(hidden[:, :-1], ((0, 0), (1, 0), (0, 0)))
    deviation = jnp.asarray(on_mask(jnp.mean((before - hidden) ** 2, axis=-1), batch))
    score = hyper["timestep"] / (1 - hyper["timestep"]) * deviation
    batch = batch.replace(process_reward=score)
    process = deviation_penalty(hyper["threshold"], hyper["topk"])
    outcome = standardized_reward(hyper["eps"])
    method = recipe_with(hyper, "rlfr", coefficient=hyper["coef"], most=hyper["topk"])
    done = golden.evaluate(method, case, batch=batch)
    return {
        "score_kept": -process.of(batch, batch.mask),
        "outcome": outcome(batch),
        "token_rewards": paid_tokens(batch, batch.mask, process, hyper["coef"], outcome),
        "advantages": done.signals.advantage,
    }
