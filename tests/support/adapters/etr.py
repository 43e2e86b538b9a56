"""ETR's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.objectives import group_mean

LEFT_OUT = {
    name: "a factor of the half-width, which is compared"
    for name in ("micro_factor", "micro_factor_soft", "macro_factor", "macro_factor_soft")
}


@both
def outputs(case, hyper, soft):
    etr = recipe_with(hyper, "etr")
    done = golden.evaluate(etr, case, soft)
    batch = done.batch
    return {
        **done.outputs(),
        "pass_rate": group_mean(batch.reward, batch.group),
        "clip_range": on_mask(done.signals.clip_high, batch),
    }
