"""The vectors of DARS."""

import golden_vectors as golden
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.methods.exploration.depth_breadth_dars import budget_for_hard, extra_rollouts

TOTAL = "a property of the advantages, which are compared"
NORMALIZED = "the budget for normalized advantages is no part of the recipe"
LEFT_OUT = {
    "cumulative": TOTAL,
    "cumulative_std": TOTAL,
    "extra_equal_std": NORMALIZED,
    "extra_hardness_std": NORMALIZED,
    "table_equal_std": NORMALIZED,
    "table_hardness_std": NORMALIZED,
}
TABLE_SIZE = 8  # of the vectors, with these limits
TABLE_LIMITS = {"equal": 32, "hardness": 64}


def outputs(case, hyper):
    method = recipe_with(hyper, "depth_breadth_dars")
    done = golden.evaluate(method, case)
    found = {
        **done.outputs(),
        "keep": done.batch.mask.any(axis=1),
    }
    outcomes = golden.experience_batch(golden.rollouts(case)).outcomes()
    every = np.arange(TABLE_SIZE + 1)
    for name, flag in (("equal", False), ("hardness", True)):
        table = extra_rollouts(every, TABLE_SIZE, TABLE_LIMITS[name], by_hardness=flag)
        found |= {
            f"extra_{name}": budget_for_hard(flag)(outcomes, hyper["n_max"]),
            f"table_{name}": table,
        }
    return found
