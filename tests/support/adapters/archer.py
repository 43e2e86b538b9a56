"""Archer's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.divergences import k3_clamped
from rlvr_jax.objectives.statistics.scopes import above_quantile, scoped_quantile, within_response

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    archer = recipe(
        "archer",
        quantile=hyper["quantile"],
        clip_low_entropy=hyper["clip_low_entropy"],
        clip_high_entropy=hyper["clip_high_entropy"],
        kl_low_entropy=hyper["kl_low_entropy"],
        kl_high_entropy=hyper["kl_high_entropy"],
        dual=hyper["dual"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(archer, case, soft)
    batch, stats = done.batch, golden.stats(case)
    place = (stats.entropy, batch.mask, within_response(batch), hyper["quantile"])
    return {
        "entropy": on_mask(stats.entropy, batch),
        "threshold": scoped_quantile(*place)[:, 0],
        "high_entropy": above_quantile(*place),
        "kl": on_mask(k3_clamped(stats.logp, batch.reference_logp, batch.old_logp), batch),
        "kl_low": done.metrics["kl_low_entropy"],
        "kl_high": done.metrics["kl_high_entropy"],
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
