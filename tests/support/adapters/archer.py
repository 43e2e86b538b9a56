"""Archer's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.objectives.statistics.divergences import k3_clamped
from rlvr_jax.objectives.statistics.scopes import above_quantile, scoped_quantile, within_response


@both
def outputs(case, hyper, soft):
    archer = recipe_with(hyper, "archer")
    done = golden.evaluate(archer, case, soft)
    batch, stats = done.batch, golden.stats(case)
    place = (stats.entropy, batch.mask, within_response(batch), hyper["quantile"])
    return {
        **done.outputs(),
        "entropy": on_mask(stats.entropy, batch),
        "threshold": scoped_quantile(*place)[:, 0],
        "high_entropy": above_quantile(*place),
        "kl": on_mask(k3_clamped(stats.logp, batch.reference_logp, batch.old_logp), batch),
        "kl_low": done.metrics["kl_low_entropy"],
        "kl_high": done.metrics["kl_high_entropy"],
    }
