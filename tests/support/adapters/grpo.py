"""GRPO's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.objectives import group_mean, group_std, k3


@both
def outputs(case, hyper, soft):
    grpo = recipe_with(hyper, "grpo")
    done = golden.evaluate(grpo, case, soft)
    batch, stats = done.batch, golden.stats(case)
    kl = k3(stats.logp, batch.reference_logp, batch.old_logp)
    return {
        **done.outputs(),
        "group_mean": group_mean(batch.reward, batch.group),
        "group_std": group_std(batch.reward, batch.group),
        "kl": on_mask(kl, batch),
    }
