"""rStar-Math's vectors: rows of a group are siblings, their last values the scores of a model."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.experience.draws.trees.nodes import upper_confidence
from rlvr_jax.methods.trees.rstar_math import pair_gradient, sibling_pairs

LEFT_OUT = {"loss": "the guide takes the gradient, which is compared"}


def outputs(case, hyper):
    data = golden.inputs(case)
    mask, size = data["mask"], int(data["group_size"])
    rows = np.arange(len(mask))
    quality = 2 * data["soft_rewards"] - 1
    groups = rows.reshape(-1, size)
    limits = hyper["top"], hyper["top_lonely"], hyper["margin"]
    side, pairs = np.zeros(len(mask)), []
    for own in groups:
        found = sibling_pairs(quality[own], data["rewards"][own] > 0.5, *limits)
        pairs.append([(own[one], own[other], weight) for one, other, weight in found])
        for one, other, _ in found:
            side[own[one]], side[own[other]] = 1, -1
    counted = [own for own in pairs if own]
    flat = [pair for own in counted for pair in own]
    better, worse, weight = (np.array(x) for x in zip(*flat, strict=True))
    last = np.maximum(golden.token_after(mask) - 1, 0)

    # One state per row, so that the weights of the head are the scores of the rows.
    states, scores = np.eye(len(mask)), np.append(data["values"][rows, last], 0.0)
    slope = np.zeros(mask.shape)
    slope[rows, last] = pair_gradient(scores, states[better], states[worse], weight / len(counted))[
        :-1
    ]
    visits = rows % size % 4
    parent = visits.reshape(-1, size).sum(axis=1).repeat(size)
    return {
        "pair_side": side,
        "dvalues": slope,
        "puct": upper_confidence(quality * visits, visits, parent, hyper["c_puct"]),
    }
