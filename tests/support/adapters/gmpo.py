"""GMPO's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, per_rollout, recipe_with

from rlvr_jax.methods.clipping.gmpo import trusted_log_ratio

LEFT_OUT = {
    "seq_ratio": "a factor of seq_loss, which is compared",
    "seq_ratio_soft": "a factor of seq_loss_soft, which is compared",
}


@both
def outputs(case, hyper, soft):
    gmpo = recipe_with(hyper, "gmpo")
    done = golden.evaluate(gmpo, case, soft)
    batch = done.batch
    log_ratio = trusted_log_ratio(done.signals, golden.stats(case).logp - batch.old_logp)
    return {
        **done.outputs(),
        "log_ratio_clipped": on_mask(log_ratio, batch),
        "seq_loss": per_rollout(done.token_loss, batch),
    }
