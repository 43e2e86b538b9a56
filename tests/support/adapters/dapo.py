"""DAPO's vectors: the loss of the kept groups, the shaped reward and the filter."""

import golden_vectors as golden
from adapters.common import both, recipe_with

from rlvr_jax.experience import overlong_penalty


@both
def outputs(case, hyper, soft):
    batch = golden.rollouts(case, soft)
    max_length = hyper["max_len"] or batch.mask.shape[1]
    dapo = recipe_with(
        hyper,
        "dapo",
        max_length=max_length,
        cache_length=hyper["cache"],
        overlong_factor=hyper["factor"],
    )
    done = golden.evaluate(dapo, case, soft)
    return {
        **done.outputs(),
        "penalty": overlong_penalty(batch.length, max_length, hyper["cache"], hyper["factor"]),
        "shaped": done.batch.reward,
        "keep": done.batch.mask.any(axis=1),
    }
