"""GSPO's vectors. The two forms of the loss, by token and by response, are one recipe here."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import both, per_rollout, recipe_with

from rlvr_jax.objectives.statistics.ratios import sequence_ratio


@both
def outputs(case, hyper, soft):
    gspo = recipe_with(hyper, "gspo")
    done = golden.evaluate(gspo, case, soft)
    batch = done.batch
    ratio = per_rollout(
        sequence_ratio(golden.stats(case).logp, batch.old_logp, batch.mask), batch, empty=1
    )
    return {
        **done.outputs(),
        **done.outputs("_seq"),
        "log_seq_ratio": jnp.log(ratio),
        "seq_ratio": ratio,
        "seq_loss": per_rollout(done.token_loss, batch),
    }
