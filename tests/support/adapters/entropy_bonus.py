"""The vectors of the entropy bonus: constant, alone, and with a coefficient that adapts.

The adaptive coefficient is followed over as many updates as there are rollouts: the batch of
update i has the tokens of rollout i alone.
"""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import both, on_mask, only

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import entropy_bonus, masked_mean


@both
def outputs(case, hyper, soft):
    def made(entropy_coefficient, kl_coefficient):
        method = recipe(
            "entropy_bonus",
            entropy_coefficient=entropy_coefficient,
            kl_coefficient=kl_coefficient,
            policy_coefficient=hyper["pg_coef"],
            clip_low=hyper["clip"],
            clip_high=hyper["clip"],
        )
        return golden.evaluate(method, case, soft)

    done, plain = made(hyper["ent_coef"], hyper["kl_coef"]), made(0.0, 0.0)
    # A negative coefficient is a loss that is the mean entropy itself.
    alone = golden.evaluate(only(entropy_bonus(-1.0)), case, soft)
    return {
        **done.outputs(),
        "pg_loss": plain.loss,
        "entropy": on_mask(golden.stats(case).entropy, done.batch),
        "entropy_mean": alone.loss,
        "dlogits_entropy": alone.dlogits,
        "kl_mean": done.metrics["kl_penalty/k3"],
        **adaptive(case, hyper),
    }


def adaptive(case, hyper):
    own = recipe(
        "entropy_bonus",
        entropy_coefficient=hyper["coef0"],
        kl_coefficient=0.0,
        target=hyper["target"],
        coefficient_step=hyper["delta"],
        coefficient_min=hyper["coef_min"],
        coefficient_max=hyper["coef_max"],
    ).objective
    batch, stats = golden.rollouts(case), golden.stats(case)
    rows = jnp.arange(batch.mask.shape[0])

    def update(state, row):
        alone = batch.replace(mask=batch.mask & (rows == row)[:, None])
        _, (state, metrics) = own.loss(stats, alone, state, jax.random.key(0))
        (kept,) = state.values()
        return state, (metrics["entropy_coefficient"], kept.coefficient, kept.last_entropy)

    _, (used, coefficient, _) = jax.lax.scan(update, own.init(golden.spec(batch)), rows)
    return {
        "step_entropy": np.asarray(masked_mean(stats.entropy, batch.mask, axis=1)),
        "adaptive_used": used,
        "adaptive_coef": coefficient,
    }
