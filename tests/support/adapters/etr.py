"""ETR's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import group_mean

LEFT_OUT = {
    name: "a factor of the half-width, which is compared"
    for name in ("micro_factor", "micro_factor_soft", "macro_factor", "macro_factor_soft")
}


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
    batch = done.batch
    return {
        "pass_rate": group_mean(batch.reward, batch.group),
        "clip_range": on_mask(done.signals.clip_high, batch),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
