"""ReST-RL's vectors: a group is a prompt, its rows answers in lines, and nodes of a tree."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group

from rlvr_jax.methods.trees.rest_rl import (
    best_rows,
    deviation,
    prefix_chances,
    sub_samples,
    upper_confidence,
    varied,
    visible_children,
)

LEFT_OUT = {"parent_value": "the search backs up sums; its values are their means"}
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
    drawn = [sub_samples(n, hyper["ratio"]) * there for n, there in zip(lines, cut, strict=True)]

    value = jnp.asarray(outcomes)
    visits = jnp.asarray(by_group(data["mask"].sum(axis=1), case), float)
    parent = jnp.sum(visits, axis=1, keepdims=True)
    bound = upper_confidence(value, visits, parent, hyper["c"], hyper["eps"])
    return {
        "reward_std": deviation(outcomes),
        "keep": keep,
        "best": rows,
        "sub_samples": drawn,
        "prefix_probability": chances,
        "visits": visits.ravel(),
        "uct": bound.ravel(),
        "visible": visible_children(value, hyper["decisions"]).ravel(),
    }
