"""EARL's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.scopes import scoped_quantile, within_response

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    def made(kl_coefficient):
        method = recipe(
            "earl",
            fraction=hyper["rho"],
            kl_coefficient=kl_coefficient,
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
        )
        return golden.evaluate(method, case, soft)

    done = made(hyper["beta"])
    batch, entropy = done.batch, golden.stats(case).entropy
    sets = within_response(batch)
    return {
        "entropy": on_mask(entropy, batch),
        "keep": batch.mask & (done.signals.weight == 1),
        "threshold": scoped_quantile(entropy, batch.mask, sets, 1 - hyper["rho"])[:, 0],
        "advantages": done.signals.advantage,
        "token_loss": made(0.0).token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
