"""STEER's vectors."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.methods.entropy.steer import estimated_entropy_change

SECOND = "exponential weights, which no recipe has"
LEFT_OUT = {
    f"{name}{kind}": SECOND
    for name in ("weight_exp", "loss_exp", "dlogits_exp")
    for kind in ("", "_soft")
}


@both
def outputs(case, hyper, soft):
    method = recipe_with(hyper, "steer", weight_low=hyper["w_min"], weight_high=hyper["w_max"])
    done = golden.evaluate(method, case, soft)
    batch, stats, advantage = done.batch, golden.stats(case), done.signals.advantage
    change = estimated_entropy_change(advantage, stats.logp, batch.old_logp, stats.entropy)
    return {
        **done.outputs(),
        "entropy": on_mask(stats.entropy, batch),
        "advantages": advantage,
        "omega": on_mask(change, batch),
        "weight_linear": jnp.where(batch.mask, done.signals.weight, 0),
    }
