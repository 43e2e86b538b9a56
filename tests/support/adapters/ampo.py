"""AMPO's vectors: the rows of another policy are solutions, in every group."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask, recipe_of

from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.ampo import average_by_origin, comprehension, none_above
from rlvr_jax.objectives import by_origin, group_normalized, ppo_clip, shaped_probability

LEFT_OUT = {}


def outputs(case, hyper):
    gamma, clip = hyper["shape_gamma"], hyper["clip"]
    method = recipe(
        "ampo",
        gamma=gamma,
        clip_low=clip,
        clip_high=clip,
        dual_clip=hyper["dual_clip"],
        entropy_coefficient=0.0,
        max_length=golden.inputs(case)["mask"].shape[1],
    )
    done = golden.evaluate(method, case)
    batch = done.batch
    foreign = np.asarray(batch.off_policy)
    surrogate = by_origin(ppo_clip(clip, clip), shaped_probability(gamma, clip))
    advantage = group_normalized(hyper["std_eps"])
    paper = recipe_of(advantage, surrogate, transforms=[average_by_origin()])
    of_paper = golden.evaluate(paper, case)
    outcomes = golden.experience_batch(batch).by_group(np.where(foreign, np.nan, batch.outcome), 0)
    logp, mask = np.asarray(batch.old_logp), np.asarray(batch.mask)
    return {
        "need_guidance": none_above(hyper["threshold"])(outcomes),
        "comprehension": comprehension(logp, mask),
        "comprehension_geometric": comprehension(logp, mask, geometric=True),
        "advantages": done.signals.advantage,
        "advantages_std": of_paper.signals.advantage,
        "shaped": np.where(foreign[:, None], on_mask(done.signals.ratio, batch), 0),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
        "loss_paper": of_paper.loss,
        "dlogits_paper": of_paper.dlogits,
    }
