"""ReST-RL's vectors: a group is a prompt, its rows are responses in lines."""

import golden_vectors as golden
import numpy as np
from adapters.common import by_group

from rlvr_jax.methods.trees.rest_rl import (
    best_rows,
    deviation,
    prefix_chances,
    sub_samples,
    varied,
)

LEFT_OUT = dict.fromkeys(
    ("parent_value", "uct", "visible", "visits"), "the tree search of decoding is not included"
)
WIDTH = 8


def outputs(case, hyper):
    data = golden.inputs(case)
    outcomes = by_group(data["soft_rewards"], case)
    size = outcomes.shape[1]
    keep, best = varied(outcomes, hyper["std_min"]), best_rows(outcomes)
    rows = np.arange(len(best)) * size + best
    cut = keep & (outcomes.max(axis=1) >= hyper["accept"])
    lines = [len(np.unique(data["step_ids"][row][data["mask"][row]])) for row in rows]
    chances = np.zeros((len(rows), WIDTH))
    for group in np.flatnonzero(cut):
        chances[group, : lines[group]] = prefix_chances(lines[group], hyper["decay"])
    sampled = [sub_samples(n, hyper["ratio"]) * there for n, there in zip(lines, cut, strict=True)]

    return {
        "reward_std": deviation(outcomes),
        "keep": keep,
        "best": rows,
        "sub_samples": sampled,
        "prefix_probability": chances,
    }
