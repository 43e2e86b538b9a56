"""AMPO's vectors: the rows of another policy are solutions, in every group."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.ampo import comprehension, none_above

PAPER = "the paper's form, of which the method has the released script's"
LEFT_OUT = {
    **dict.fromkeys(("advantages_std", "loss_paper", "dlogits_paper"), PAPER),
    "comprehension_geometric": "a mean that the method does not use",
}


def outputs(case, hyper):
    clip = hyper["clip"]
    method = recipe(
        "ampo",
        gamma=hyper["shape_gamma"],
        clip_low=clip,
        clip_high=clip,
        dual_clip=hyper["dual_clip"],
        entropy_coefficient=0.0,
        max_length=golden.inputs(case)["mask"].shape[1],
    )
    done = golden.evaluate(method, case)
    batch = done.batch
    foreign = np.asarray(batch.records["off_policy"])

    outcomes = golden.experience_batch(batch).by_group(np.where(foreign, np.nan, batch.outcome), 0)
    logp, mask = np.asarray(batch.old_logp), np.asarray(batch.mask)
    return {
        **done.outputs(),
        "need_guidance": none_above(hyper["threshold"])(outcomes),
        "comprehension": comprehension(logp, mask),
        "shaped": np.where(foreign[:, None], on_mask(done.signals.ratio, batch), 0),
    }
