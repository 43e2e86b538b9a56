"""APO's vectors. The parts of the loss come from two prices: one of 0 and one of 1."""

import golden_vectors as golden
from adapters.common import on_mask, per_rollout, recipe_with

from rlvr_jax.methods.credit.apo import kl_weight_by_difficulty, long_error_factor
from rlvr_jax.objectives import Context, k3

LEFT_OUT = {"difficulty": "an intermediate of the weights of the KL, which are compared"}


def outputs(case, hyper):
    def with_price(kl_coefficient):
        method = recipe_with(hyper, "apo", length_base=hyper["base"], kl_coefficient=kl_coefficient)
        return golden.evaluate(method, case)

    done, free, priced = with_price(hyper["kl_coef"]), with_price(0), with_price(1.0)
    batch, stats = done.batch, golden.stats(case)
    length = batch.mask.sum(axis=1)
    context = Context(stats, batch, batch.old_logp, None)
    kl = k3(stats.logp, batch.reference_logp, batch.old_logp)
    return {
        **done.outputs(),
        "length_weight": long_error_factor(
            batch.reward, batch.group, length, hyper["base"], hyper["eps"]
        ),
        "kl_weight": per_rollout(kl_weight_by_difficulty(done.signals, context), batch, empty=1),
        "kl": on_mask(kl, batch),
        "token_loss": free.token_loss,
        "pg_loss": free.loss,
        "kl_loss": priced.loss - free.loss,
        "dlogits_kl": priced.dlogits - free.dlogits,
    }
