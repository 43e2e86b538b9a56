"""The vectors of forking tokens: TRL's reading, and the choices of two others."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.choices import masked_top_k
from rlvr_jax.objectives.statistics.masked import fraction_of, masked_count
from rlvr_jax.objectives.statistics.scopes import above_quantile, within_response

OTHER = "another denominator, which no recipe has"
LEFT_OUT = {"loss_over_kept": OTHER, "loss_over_kept_soft": OTHER}


@both
def outputs(case, hyper, soft):
    fraction = hyper["rho"]
    method = recipe(
        "forking_tokens",
        fraction=fraction,
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
    )
    done = golden.evaluate(method, case, soft)
    batch, entropy = done.batch, golden.stats(case).entropy
    k = jnp.maximum(fraction_of(fraction, masked_count(batch.mask)), 1)
    sets = within_response(batch)
    return {
        "entropy": on_mask(entropy, batch),
        "threshold": done.metrics["entropy_threshold"],
        "keep": batch.mask & (done.signals.weight == 1),
        "keep_topk": masked_top_k(entropy, batch.mask, k, batch.rollout_id),
        "keep_per_response": above_quantile(entropy, batch.mask, sets, 1 - fraction),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
