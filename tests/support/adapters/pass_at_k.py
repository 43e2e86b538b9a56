"""pass@k of the answers: 0 is right, one id stands for none."""

import golden_vectors as golden
import numpy as np
from adapters.common import by_group

from rlvr_jax.analysis.boundary.pass_at_k import (
    all_at_k,
    majority_at_k,
    pass_at_k,
    pass_at_k_curve,
    pass_at_k_variance,
    plug_in_pass_at_k,
)

RIGHT = 0


def outputs(case, hyper):
    answers = by_group(golden.inputs(case)["answers"], case)
    n, correct = answers.shape[1], (answers == RIGHT).sum(axis=1)
    ks = np.arange(1, n + 1)
    each = (n, correct[:, None], ks)
    majority = np.array(
        [[majority_at_k(row, RIGHT, int(k), hyper["unparsed"]) for k in ks] for row in answers]
    )
    curve = pass_at_k_curve(n, correct, ks)
    return {
        "correct": correct,
        "pass_at_k": pass_at_k(*each),
        "plug_in": plug_in_pass_at_k(*each),
        "all_k": all_at_k(*each),
        "maj_at_k": majority,
        "variance": pass_at_k_variance(*each),
        "mean_pass_at_k": [point.mean for point in curve],
        "stderr_pass_at_k": [point.standard_error for point in curve],
        "mean_maj_at_k": majority.mean(axis=0),
    }
