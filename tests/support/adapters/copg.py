"""CoPG's vectors; `surrogate` is the loss of the recipe."""

import golden_vectors as golden
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import masked_sum

LEFT_OUT = {
    "reward": "a term of the coefficient, which is compared",
    "loss": "the square form, which is not built",
    "dlogits_square": "the square form, which is not built",
}


def outputs(case, hyper):
    done = golden.evaluate(recipe("copg", kl_coefficient=hyper["beta"]), case)
    batch = done.batch
    log_ratio = masked_sum(golden.stats(case).logp - batch.reference_logp, batch.mask, axis=1)
    return {
        "log_ratio": log_ratio,
        "coefficient": per_rollout(done.signals.advantage, batch),
        "surrogate": done.loss,
        "dlogits": done.dlogits,
    }
