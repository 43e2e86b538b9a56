"""The vectors of CURE: where rows may branch, and what is kept; the place itself is drawn."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.trees.cure import (
    barred_tokens,
    critical_positions,
    eligible,
    sampled_positions,
)


def outputs(case, hyper):
    method = recipe("cure", samples=hyper["n2"], top_k=hyper["top_k"])
    batch = golden.experience_batch(golden.rollouts(case))
    rollouts = batch.rollouts
    barred = barred_tokens(batch.tokenizer, 1)
    assert np.flatnonzero(barred).tolist() == hyper["barred"]
    where = eligible(rollouts, barred)
    candidates = critical_positions(rollouts.entropy, where, hyper["top_k"])
    number = candidates.sum(axis=1)
    # Of one candidate nothing is left to chance.
    likeliest = critical_positions(rollouts.entropy, where, 1)
    top = sampled_positions(likeliest, np.random.default_rng(0))
    sizes = range(1 + hyper["n2"], 99, 1 + hyper["n2"])
    total = [n for n in sizes if method.experience.initial_samples(n) == hyper["n1"]]
    return {
        "entropy": rollouts.entropy,
        "eligible": where,
        "candidate": candidates,
        "candidates": number,
        "branch_prob": np.where(candidates, 1 / np.maximum(number, 1)[:, None], 0),
        "top_position": top,
        "kept_prefix": rollouts.mask & (np.arange(where.shape[1])[None] < top[:, None]),
        "group_total": total[0],
    }
