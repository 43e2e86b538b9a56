"""GRPO's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import group_mean, group_std, k3

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    grpo = recipe(
        "grpo", clip_low=hyper["clip"], clip_high=hyper["clip"], kl_coefficient=hyper["beta"]
    )
    done = golden.evaluate(grpo, case, soft)
    batch, stats = done.batch, golden.stats(case)
    kl = k3(stats.logp, batch.reference_logp, batch.old_logp)
    return {
        "group_mean": group_mean(batch.reward, batch.group),
        "group_std": group_std(batch.reward, batch.group),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "kl": on_mask(kl, batch),
    }
