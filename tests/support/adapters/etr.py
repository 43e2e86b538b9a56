"""ETR's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.etr import advantage_widening, pass_rate_widening
from rlvr_jax.objectives import group_mean

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    etr = recipe(
        "etr",
        clip=hyper["clip"],
        micro=hyper["micro"],
        macro=hyper["macro"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(etr, case, soft)
    batch, advantage = done.batch, done.signals.advantage
    micro = advantage_widening(advantage, hyper["micro"])
    return {
        "pass_rate": group_mean(batch.reward, batch.group),
        "micro_factor": per_rollout(micro, batch, empty=1),
        "macro_factor": pass_rate_widening(batch.reward, batch.group, hyper["macro"]),
        "clip_range": on_mask(done.signals.clip_high, batch),
        "advantages": advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
