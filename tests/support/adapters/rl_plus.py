"""RL-PLUS's vectors: the rows of another policy are the worked solutions."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.rl_plus import mixture_importance, weigh_unlikely
from rlvr_jax.objectives import (
    by_origin,
    fixed_length_sum,
    group_normalized,
    importance_weighted,
    objective,
)
from rlvr_jax.types import Recipe


def outputs(case, hyper):
    width = golden.inputs(case)["mask"].shape[1]
    method = recipe(
        "rl_plus", exploration=hyper["gamma"], entropy_coefficient=0.0, max_length=width
    )
    done = golden.evaluate(method, case)
    batch = done.batch
    # The paper's formula divides by the standard deviation.
    of_paper = Recipe(
        objective(
            advantage=group_normalized(hyper["std_eps"]),
            transforms=[weigh_unlikely(hyper["gamma"])],
            surrogate=by_origin(importance_weighted(), mixture_importance()),
            aggregation=fixed_length_sum(width),
        )
    )
    scaled = golden.evaluate(of_paper, case)
    foreign = np.asarray(batch.records["off_policy"])[:, None]

    def on_foreign(values):
        return np.where(foreign, on_mask(values, batch), 0)

    return {
        **done.outputs(),
        **scaled.outputs("_std"),
        "mis_ratio": on_foreign(done.signals.ratio),
        "explore_weight": on_foreign(done.signals.weight),
    }
