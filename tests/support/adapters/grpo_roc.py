"""The vectors of GRPO-RoC: half of each group is kept."""

import golden_vectors as golden
from adapters.common import recipe_with

from rlvr_jax.methods.agents.grpo_roc import missed_rewards


def outputs(case, hyper):
    method = recipe_with(
        hyper,
        "grpo_roc",
        oversampling=round(1 / hyper["keep_share"]),
        min_incorrect=hyper["min_neg"],
        min_correct=hyper["min_pos"],
    )
    kept = round(hyper["keep_share"] * int(golden.inputs(case)["group_size"]))
    done = golden.evaluate(method, case, samples=kept)
    return {
        **done.outputs(),
        "penalty": missed_rewards(golden.experience_batch(golden.rollouts(case)), None),
        "keep": done.batch.mask.any(axis=1),
    }
