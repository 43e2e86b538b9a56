"""KL-Cov's vectors."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.covariance import token_covariance
from rlvr_jax.objectives.statistics.masked import masked_count
from rlvr_jax.objectives.transforms.weights import is_chosen

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    method = recipe("kl_cov", fraction=hyper["ratio"], penalty_coefficient=hyper["coef"])
    done = golden.evaluate(method, case, soft)
    held = is_chosen(done.signals)
    return {
        "advantages": done.signals.advantage,
        "cov": token_covariance(done.signals.advantage, golden.stats(case).logp, done.batch.mask),
        "n_pick": masked_count(held),
        "selected": held,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
