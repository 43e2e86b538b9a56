"""DAPO's vectors: the loss of the kept groups, the shaped reward and the filter."""

import golden_vectors as golden
from adapters.common import both

from rlvr_jax.experience import overlong_penalty
from rlvr_jax.methods import recipe

LEFT_OUT = {}


@both
def outputs(case, hyper, soft):
    batch = golden.rollouts(case, soft)
    max_length = hyper["max_len"] or batch.mask.shape[1]
    dapo = recipe(
        "dapo",
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        max_length=max_length,
        cache_length=hyper["cache"],
        overlong_factor=hyper["factor"],
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(dapo, case, soft)
    return {
        "penalty": overlong_penalty(batch.length, max_length, hyper["cache"], hyper["factor"]),
        "shaped": done.batch.reward,
        "keep": done.batch.mask.any(axis=1),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
