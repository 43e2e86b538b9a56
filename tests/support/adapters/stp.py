"""STP's vectors: a group is a statement, a row a proof of it; likeness is that of hidden states."""

import golden_vectors as golden
import numpy as np
from adapters.common import by_group

from rlvr_jax.methods.self_play.stp import (
    is_example,
    is_seed,
    matching_weights,
    proof_weights,
    reprove_chance,
)

LEFT_OUT = {"matching_weight_inf": "a variant that the recipe does not have"}


def outputs(case, hyper):
    data = golden.inputs(case)
    third = data["multi_rewards"][:, 2]
    correct = (data["rewards"] == 1) & (third > 0.4)
    size = int(data["group_size"])
    rates = np.repeat(by_group(correct.astype(float), case).mean(axis=1), size)
    group = np.arange(len(correct)) // size
    length = data["mask"].sum(axis=1)
    costs = {"length_cost": hyper["length_coef"], "time_cost": hyper["time_coef"]}
    costs["most"] = hyper["max_rate"]
    weights = proof_weights(correct, group, rates, 100 * length, 60 * third, **costs)

    mean = np.where(data["mask"][..., None], data["hidden"], 0).sum(axis=1)
    mean = mean / np.maximum(length, 1)[:, None]
    last = data["hidden"][np.arange(len(correct)), np.maximum(length - 1, 0)]

    matched = np.zeros(len(correct))
    matched[correct] = matching_weights(mean[correct], last[~correct], hyper["cap"])
    hard = hyper["conjecture_rate"]
    return {
        "success_rate": rates,
        "proof_weight": weights,
        "conjecture_example": is_example(rates, hard),
        "conjecture_seed": correct & is_seed(rates, hard, hyper["margin"]),
        "reprove_prob": reprove_chance(rates, hard + hyper["margin"], hyper["redo"]),
        "matching_weight": matched,
    }
