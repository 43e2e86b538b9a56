"""GSPO's vectors. The two forms of the loss, by token and by response, are one recipe here."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.ratios import sequence_ratio

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    gspo = recipe(
        "gspo",
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(gspo, case, soft)
    batch = done.batch
    ratio = per_rollout(
        sequence_ratio(golden.stats(case).logp, batch.old_logp, batch.mask), batch, empty=1
    )
    return {
        "log_seq_ratio": jnp.log(ratio),
        "seq_ratio": ratio,
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "seq_loss": per_rollout(done.token_loss, batch),
        "loss_seq": done.loss,
        "dlogits_seq": done.dlogits,
    }
