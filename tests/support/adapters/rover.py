"""ROVER's vectors; `_std` has the advantages of the authors' scripts for mathematics."""

import golden_vectors as golden
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.rover import (
    next_value,
    uniform_value,
    uniform_value_regression,
    value_target,
)
from rlvr_jax.objectives import group_normalized, objective, token_mean
from rlvr_jax.types import Recipe

LEFT_OUT = {}


def outputs(case, hyper):
    batch, stats = golden.rollouts(case), golden.stats(case)
    scale, next_scale = hyper["rho"], hyper["next_scale"]
    normalized = objective(
        advantage=group_normalized(),
        surrogate=uniform_value_regression(scale, next_scale),
        aggregation=token_mean(),
    )
    values = uniform_value(stats, batch, scale)
    found = {
        "q": on_mask(scale * (stats.logp - batch.old_logp), batch),
        "value": on_mask(values, batch),
        "next_value": on_mask(next_value(values, batch.mask), batch),
    }
    readings = {
        "": recipe("rover", scale=scale, next_scale=next_scale),
        "_std": Recipe(normalized),
    }
    for suffix, own in readings.items():
        done = golden.evaluate(own, case)
        target = value_target(done.signals.advantage, values, batch.mask, next_scale)
        found |= {
            f"advantages{suffix}": row_advantages(own, batch),
            f"target{suffix}": on_mask(target, batch),
            f"loss{suffix}": done.loss,
            f"dlogits{suffix}": done.dlogits,
        }
    return found
