"""ASearcher's vectors: the reference policy plays the sampler."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.agents.asearcher import scaled_centered
from rlvr_jax.objectives import no_policy_loss, objective, token_mean
from rlvr_jax.types import Recipe

LEFT_OUT = {}


def outputs(case, hyper):
    batch = golden.rollouts(case, soft=True)
    batch = batch.replace(behaviour_logp=batch.reference_logp)
    method = recipe(
        "asearcher",
        scale=hyper["scale"],
        bias=hyper["bias"],
        limit=hyper["clip_reward"],
        clip_low=hyper["clip"],
        clip_high=hyper["clip"],
        cap=hyper["cap"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(method, case, batch=batch)
    scaled = objective(
        scaled_centered(hyper["scale"], hyper["bias"], hyper["clip_reward"]),
        surrogate=no_policy_loss(),
        aggregation=token_mean(),
    )
    weight = on_mask(done.signals.weight, batch)
    return {
        "scaled_reward": row_advantages(Recipe(scaled), batch),
        "advantages": done.signals.advantage,
        "behaviour_weight": weight,
        "behaviour_ok": on_mask(weight > 0, batch),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": np.asarray(done.dlogits),
    }
