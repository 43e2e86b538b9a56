"""OPO's vectors."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.groups import group_mean


@both
def outputs(case, hyper, soft):
    done = golden.evaluate(recipe("opo"), case, soft)
    batch = done.batch
    length = batch.mask.sum(axis=1).astype(batch.reward.dtype)
    return {
        **done.outputs(),
        "baseline": group_mean(batch.reward, batch.group, weights=length),
    }
