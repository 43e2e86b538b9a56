"""The vectors of variance-aware sampling: scores, weights and chances of prompts."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import mixed
from rlvr_jax.methods.curricula.mmr1_vas import (
    as_they_are,
    distinct_ngrams,
    edit_distance,
    min_max,
    promotion,
    refreshed,
)

SPLIT = "⌊λB⌋ and its rest, a rounding inside `variance_promotion`"
LEFT_OUT = {"n_weighted": SPLIT, "n_uniform": SPLIT}
LETTERS = 4  # tokens are taken modulo this, so that 3-grams repeat


def outputs(case, hyper):
    batch = golden.experience_batch(golden.rollouts(case))
    size = int(golden.inputs(case)["group_size"])
    visits = visits_of([batch], len(batch))
    tokens, mask = batch.rollouts.tokens % LETTERS, batch.rollouts.mask
    varied, far = (
        np.array([of(tokens[visit.rows], mask[visit.rows]) for visit in visits])
        for of in (distinct_ngrams, edit_distance)
    )
    rate = np.array([visit.rate for visit in visits])
    score = promotion(rate, varied, hyper["alpha"], hyper["beta"])
    none = np.zeros_like(score)
    weight, scaled = (
        refreshed(none, score, scale, hyper["momentum"]) for scale in (as_they_are, min_max)
    )

    by_group = {
        "pass_rate": rate,
        "ovs": promotion(rate, 0.0, 1.0, 0.0),
        "distinct_3": varied,
        "edit_distance": far,
        "vps": score,
        "weight_minmax": scaled,
        "prob": mixed(weight, 1 - hyper["mix"]),
        "prob_minmax": mixed(scaled, 1 - hyper["mix"]),
    }
    return {name: np.repeat(values, size) for name, values in by_group.items()}
