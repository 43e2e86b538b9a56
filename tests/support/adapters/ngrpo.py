"""NGRPO's vectors."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.methods import recipe
from rlvr_jax.objectives.statistics.groups import group_mean, group_std

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    ngrpo = recipe(
        "ngrpo",
        max_reward=hyper["max_reward"],
        num_virtual=hyper["n_virtual"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(ngrpo, case, soft)
    batch, virtual = done.batch, (hyper["max_reward"], hyper["n_virtual"])
    return {
        "group_mean": group_mean(batch.reward, batch.group, virtual=virtual),
        "group_std": group_std(batch.reward, batch.group, virtual=virtual),
        "advantages": done.signals.advantage,
        "dropped": ~done.signals.mask.any(axis=1),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
