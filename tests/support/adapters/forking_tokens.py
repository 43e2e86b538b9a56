"""The vectors of forking tokens: TRL's reading, and the choices of two others."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.objectives import fraction_of, masked_count, masked_top_k, within_response
from rlvr_jax.objectives.statistics.scopes import above_quantile

OTHER = "another denominator, which no recipe has"
LEFT_OUT = {"loss_over_kept": OTHER, "loss_over_kept_soft": OTHER}


@both
def outputs(case, hyper, soft):
    fraction = hyper["rho"]
    method = recipe_with(hyper, "forking_tokens", fraction=fraction)
    done = golden.evaluate(method, case, soft)
    batch, entropy = done.batch, golden.stats(case).entropy
    k = jnp.maximum(fraction_of(fraction, masked_count(batch.mask)), 1)
    sets = within_response(batch)
    return {
        **done.outputs(),
        "entropy": on_mask(entropy, batch),
        "threshold": done.metrics["entropy_threshold"],
        "keep": batch.mask & (done.signals.weight == 1),
        "keep_topk": masked_top_k(entropy, batch.mask, k, batch.rollout_id),
        "keep_per_response": above_quantile(entropy, batch.mask, sets, 1 - fraction),
    }
