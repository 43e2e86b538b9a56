"""NGRPO's vectors."""

import golden_vectors as golden
from adapters.common import both, recipe_with

from rlvr_jax.objectives.statistics.groups import group_mean, group_std


@both
def outputs(case, hyper, soft):
    ngrpo = recipe_with(hyper, "ngrpo", num_virtual=hyper["n_virtual"])
    done = golden.evaluate(ngrpo, case, soft)
    batch, virtual = done.batch, (hyper["max_reward"], hyper["n_virtual"])
    return {
        **done.outputs(),
        "group_mean": group_mean(batch.reward, batch.group, virtual=virtual),
        "group_std": group_std(batch.reward, batch.group, virtual=virtual),
        "dropped": ~done.signals.mask.any(axis=1),
    }
