"""The vectors of three papers on pass@k."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.passk_advantage import (
    best_of_n,
    pass_at_k,
    pass_at_k_centered,
    pass_at_k_marginal,
    pass_at_k_weight,
    subset_normalized,
)
from rlvr_jax.objectives.statistics.groups import group_count, group_sum


def outputs(case, hyper):
    k, clip, epsilon = hyper["k"], hyper["clip"], hyper["eps"]
    batch = golden.rollouts(case)
    _, first = np.unique(batch.group, return_index=True)
    correct = (batch.reward == 1).astype(batch.group.dtype)
    n, c = group_count(batch.group), group_sum(correct, batch.group)
    rate = pass_at_k(n, c, k)
    found = {
        "passk": rate[first],
        "passk_std": np.sqrt(rate * (1 - rate))[first],
        "passk_others": pass_at_k(n - 1, c - correct, k),
    }
    for name, advantage, rewards in (
        ("best", best_of_n(epsilon=epsilon), (False, True)),
        ("best_nostd", best_of_n(normalize=False), (False, True)),
        ("subset", subset_normalized(k, epsilon), (False,)),
        ("unbiased", pass_at_k_weight(k), (False,)),
        ("unbiased_loo", pass_at_k_centered(k), (False,)),
        ("unbiased_loo1", pass_at_k_marginal(k), (False,)),
    ):
        method = recipe("passk_advantage", advantage=advantage, clip_low=clip, clip_high=clip)
        for soft in rewards:
            done = golden.evaluate(method, case, soft)
            own = done.outputs(f"_{name}")
            found |= golden.named(own, soft)
    return found
