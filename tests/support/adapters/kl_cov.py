"""KL-Cov's vectors."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import is_chosen, masked_count, token_covariance


@both
def outputs(case, hyper, soft):
    method = recipe("kl_cov", fraction=hyper["ratio"], penalty_coefficient=hyper["coef"])
    done = golden.evaluate(method, case, soft)
    held = is_chosen(done.signals)
    return {
        **done.outputs(),
        "cov": token_covariance(done.signals.advantage, golden.stats(case).logp, done.batch.mask),
        "n_pick": masked_count(held),
        "selected": held,
    }
