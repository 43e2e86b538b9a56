"""CISPO's vectors; `low` and `high` are the bounds of the weight themselves."""

import golden_vectors as golden
from adapters.common import both, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import clip_to_trusted


@both
def outputs(case, hyper, soft):
    cispo = recipe(
        "cispo",
        clip_low=1 - hyper["low"],
        clip_high=hyper["high"] - 1,
        epsilon=hyper["eps"],
    )
    done = golden.evaluate(cispo, case, soft)
    return {
        **done.outputs(),
        "is_weight": on_mask(clip_to_trusted(done.signals), done.batch),
    }
