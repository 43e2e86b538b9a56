"""LUFFY's vectors: the rows of another policy are the worked solutions."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask, recipe_of

from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.hpt import off_policy_tokens
from rlvr_jax.objectives import (
    by_origin,
    drop_off_policy,
    group_centered,
    imitate,
    ppo_clip,
    shaped_probability,
)

LEFT_OUT = {"advantages_split": "statistics of own rows only, which the method does not have"}


def outputs(case, hyper):
    gamma, clip = hyper["shape_gamma"], ppo_clip(hyper["clip"], hyper["clip"])
    width = golden.inputs(case)["mask"].shape[1]
    method = recipe("luffy_mixed", gamma=gamma, entropy_coefficient=0.0, max_length=width)
    done = golden.evaluate(method, case)
    batch = done.batch

    shaping = by_origin(clip, shaped_probability(gamma))
    clipped = golden.evaluate(recipe_of(group_centered(), shaping), case)
    imitation = imitate(hyper["sft_coef"], off_policy_tokens, {"off_policy"})
    both = recipe_of(
        group_centered(), clip, transforms=[drop_off_policy()], regularizers=[imitation]
    )
    sft = golden.evaluate(both, case)
    foreign = np.asarray(batch.records["off_policy"])[:, None]
    shaped = np.where(foreign, on_mask(done.signals.ratio, batch), 0)
    return {
        **done.outputs(),
        **clipped.outputs("_clipped"),
        **sft.outputs("_rl_sft"),
        "shaped": shaped,
        "shaped_weight": shaped * (1 - shaped),
    }
