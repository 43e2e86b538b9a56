"""GMPO's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.gmpo import trusted_log_ratio

LEFT_OUT = {
    "seq_ratio": "a factor of seq_loss, which is compared",
    "seq_ratio_soft": "a factor of seq_loss_soft, which is compared",
}


@both
def outputs(case, hyper, soft):
    gmpo = recipe("gmpo", log_clip=hyper["log_clip"], epsilon=hyper["eps"])
    done = golden.evaluate(gmpo, case, soft)
    batch = done.batch
    log_ratio = trusted_log_ratio(done.signals, golden.stats(case).logp - batch.old_logp)
    return {
        "advantages": done.signals.advantage,
        "log_ratio_clipped": on_mask(log_ratio, batch),
        "seq_loss": per_rollout(done.token_loss, batch),
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
