"""The vectors of perplexity shaping, over the batch and over groups, and of position shaping."""

import golden_vectors as golden

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.ppl_position_shaping import (
    relative_position,
    standardized_perplexity,
)
from rlvr_jax.objectives.statistics.scopes import within_batch, within_group

INSIDE = "a step on the way to the advantages"
LEFT_OUT = {"log_ppl": INSIDE, "position_bonus": INSIDE}


def outputs(case, hyper):
    variants = {
        "ppl": {"perplexity_coefficient": hyper["alpha"]},
        "ppl_group": {"perplexity_coefficient": hyper["alpha"], "scope": within_group},
        "position": {
            "perplexity_coefficient": 0.0,
            "position_size": hyper["gamma"],
            "position_steepness": hyper["d"],
        },
    }
    batch = golden.rollouts(case)
    logp, mask = batch.old_logp, batch.mask
    found = {
        "ppl_z": standardized_perplexity(logp, mask, batch, within_batch),
        "ppl_z_group": standardized_perplexity(logp, mask, batch, within_group),
        "position": relative_position(mask, logp.dtype),
    }
    for suffix, arguments in variants.items():
        method = recipe(
            "ppl_position_shaping", **arguments, clip_low=hyper["clip"], clip_high=hyper["clip"]
        )
        for soft in (False, True):
            done = golden.evaluate(method, case, soft)
            values = done.outputs(f"_{suffix}")
            found |= golden.named(values, soft)
    return found
