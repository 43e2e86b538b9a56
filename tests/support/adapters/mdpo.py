"""MDPO's vectors; the second policy of the divergence is the old one."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import on_mask, row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.mdpo import MirrorState

LEFT_OUT = {
    "loss_square": "the form that regresses the log ratio, which is not built",
    "dlogits_square": "the form that regresses the log ratio, which is not built",
}
UPDATES = 10


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)

    def stats_of(logits):
        return golden.token_stats(logits, batch.tokens, other=data["old_logits"])

    mdpo = recipe("mdpo", num_steps=hyper["steps"], updates_per_step=UPDATES)
    reached = MirrorState(jnp.asarray((hyper["step"] - 1) * UPDATES, jnp.int32))
    state = {"mirror_descent_kl": reached}
    done = golden.evaluate(mdpo, case, state=state, stats_of=stats_of)
    return {
        **done.outputs(),
        "tk": done.metrics["mirror_step_size"],
        "advantages": row_advantages(mdpo, batch),
        "kl": on_mask(stats_of(data["logits"]).records["kl"], batch),
        "ratio": on_mask(done.signals.ratio, batch),
    }
