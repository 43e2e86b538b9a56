"""MDPO's vectors; the second policy of the divergence is the old one."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.copg import log_ratio_regression
from rlvr_jax.methods.clipping.mdpo import MirrorState
from rlvr_jax.objectives import group_centered, objective, rollout_mean_token_mean
from rlvr_jax.types import Recipe

LEFT_OUT = {}
UPDATES = 10


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)

    def stats_of(logits):
        return golden.token_stats(logits, batch.tokens, other=data["old_logits"])

    mdpo = recipe("mdpo", num_steps=hyper["steps"], updates_per_step=UPDATES)
    reached = MirrorState(jnp.asarray((hyper["step"] - 1) * UPDATES, jnp.int32))
    state = {"mirror_descent_kl": reached}
    done = golden.evaluate(mdpo, case, state=state, stats_of=stats_of)
    square = Recipe(
        objective(
            advantage=group_centered(),
            surrogate=log_ratio_regression(hyper["tau"]),
            aggregation=rollout_mean_token_mean(),
        )
    )
    fitted = golden.evaluate(square, case)
    return {
        "tk": done.metrics["mirror_step_size"],
        "advantages": row_advantages(mdpo, batch),
        "kl": on_mask(stats_of(data["logits"]).kl, batch),
        "ratio": on_mask(done.signals.ratio, batch),
        "loss": done.loss,
        "dlogits": done.dlogits,
        "loss_square": fitted.loss,
        "dlogits_square": fitted.dlogits,
    }
