"""ASearcher's vectors: the reference policy plays the sampler."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask, recipe_with, row_advantages

from rlvr_jax.methods.agents.asearcher import scaled_centered
from rlvr_jax.objectives import no_policy_loss, objective, token_mean
from rlvr_jax.types import Recipe


def outputs(case, hyper):
    batch = golden.rollouts(case, soft=True)
    batch = batch.replace(behaviour_logp=batch.reference_logp)
    method = recipe_with(hyper, "asearcher", limit=hyper["clip_reward"])
    done = golden.evaluate(method, case, batch=batch)
    scaled = objective(
        scaled_centered(hyper["scale"], hyper["bias"], hyper["clip_reward"]),
        surrogate=no_policy_loss(),
        aggregation=token_mean(),
    )
    weight = on_mask(done.signals.weight, batch)
    return {
        **done.outputs(),
        "scaled_reward": row_advantages(Recipe(scaled), batch),
        "behaviour_weight": weight,
        "behaviour_ok": on_mask(weight > 0, batch),
        "dlogits": np.asarray(done.dlogits),
    }
