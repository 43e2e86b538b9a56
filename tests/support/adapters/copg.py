"""CoPG's vectors: `loss` is the square form, `dlogits` the gradient of the surrogate."""

import golden_vectors as golden
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.copg import pairwise_regression, regularized_return
from rlvr_jax.objectives import masked_sum, objective, rollout_mean_token_mean
from rlvr_jax.objectives.advantages.group_relative import no_advantage
from rlvr_jax.types import Recipe

LEFT_OUT = {}


def outputs(case, hyper):
    done = golden.evaluate(recipe("copg", kl_coefficient=hyper["beta"]), case)
    batch = done.batch
    pairs = Recipe(
        objective(
            advantage=no_advantage(),
            surrogate=pairwise_regression(hyper["beta"]),
            aggregation=rollout_mean_token_mean(),
        )
    )
    square = golden.evaluate(pairs, case)
    log_ratio = masked_sum(golden.stats(case).logp - batch.reference_logp, batch.mask, axis=1)
    return {
        "log_ratio": log_ratio,
        "reward": regularized_return(batch.reward, log_ratio, hyper["beta"]),
        "coefficient": per_rollout(done.signals.advantage, batch),
        "loss": square.loss,
        "surrogate": done.loss,
        "dlogits": done.dlogits,
        "dlogits_square": square.dlogits,
    }
