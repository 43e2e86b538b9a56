"""OPO's vectors."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.groups import group_mean

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    done = golden.evaluate(recipe("opo"), case, soft)
    batch = done.batch
    length = batch.mask.sum(axis=1).astype(batch.reward.dtype)
    return {
        "baseline": group_mean(batch.reward, batch.group, weights=length),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
