"""EARL's vectors."""

import golden_vectors as golden
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.objectives.statistics.scopes import scoped_quantile, within_response


@both
def outputs(case, hyper, soft):
    def made(kl_coefficient):
        method = recipe_with(hyper, "earl", fraction=hyper["rho"], kl_coefficient=kl_coefficient)
        return golden.evaluate(method, case, soft)

    done = made(hyper["beta"])
    batch, entropy = done.batch, golden.stats(case).entropy
    sets = within_response(batch)
    return {
        **done.outputs(),
        "entropy": on_mask(entropy, batch),
        "keep": batch.mask & (done.signals.weight == 1),
        "threshold": scoped_quantile(entropy, batch.mask, sets, 1 - hyper["rho"])[:, 0],
        "token_loss": made(0.0).token_loss,
    }
