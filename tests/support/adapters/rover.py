"""ROVER's vectors; `_std` has the advantages of the authors' scripts for mathematics."""

import golden_vectors as golden
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.rover import uniform_value_regression
from rlvr_jax.objectives import group_normalized, objective, token_mean
from rlvr_jax.types import Recipe

LEFT_OUT = {
    name: "a term of the loss, which is compared"
    for name in ("value", "next_value", "target", "target_std")
}


def outputs(case, hyper):
    batch, stats = golden.rollouts(case), golden.stats(case)
    scale, next_scale = hyper["rho"], hyper["next_scale"]
    normalized = objective(
        advantage=group_normalized(),
        surrogate=uniform_value_regression(scale, next_scale),
        aggregation=token_mean(),
    )
    found = {"q": on_mask(scale * (stats.logp - batch.old_logp), batch)}
    readings = {
        "": recipe("rover", scale=scale, next_scale=next_scale),
        "_std": Recipe(normalized),
    }
    for suffix, own in readings.items():
        done = golden.evaluate(own, case)
        found |= {
            **done.outputs(suffix),
            f"advantages{suffix}": row_advantages(own, batch),
        }
    return found
