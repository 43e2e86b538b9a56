"""RL-ZVP's vectors."""

import golden_vectors as golden
from adapters.common import recipe_with

from rlvr_jax.objectives.statistics.groups import group_all_equal
from rlvr_jax.objectives.statistics.scopes import scoped_max, within_response


def outputs(case, hyper):
    method = recipe_with(hyper, "rl_zvp", entropy_scale=hyper["alpha"])
    done = golden.evaluate(method, case)
    batch = done.batch
    equal = group_all_equal(batch.reward, batch.group)
    return {
        **done.outputs(),
        "entropy": batch.entropy,
        "entropy_max": scoped_max(batch.entropy, batch.mask, within_response(batch))[:, 0],
        "all_right": equal & (batch.reward > 0.5),
        "all_wrong": equal & (batch.reward <= 0.5),
    }
