"""The vectors of AEPO's rollouts: every turn is a round, and a row's place says how many forks."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.arpo import round_entropies
from adapters.common import all_logp

from rlvr_jax.experience.draws.trees.branching import (
    branch_probability,
    first_entropy,
    num_from_prompt,
)


def outputs(case, hyper):
    batch, logp = golden.rollouts(case), all_logp(case, "old_logits")
    mask = np.asarray(batch.mask)
    topk = -np.sort(-logp, axis=-1)[..., : hyper["top_k"]]
    root = first_entropy(topk, mask, hyper["window"], logp.shape[-1])
    entropy, each = round_entropies(case, hyper)
    tool = np.nan_to_num(np.nanmean(np.where(mask.any(axis=1)[:, None], each, 0), axis=1))
    place = np.arange(len(mask)) % int(golden.inputs(case)["group_size"])
    damping = np.maximum(0, 1 - hyper["penalty"] * 3 * place)
    delta = np.where(mask, entropy - np.nan_to_num(each[:, :1]), 0)
    chance = branch_probability(delta, hyper["weight"], 1 - hyper["threshold"], damping[:, None])
    difference = hyper["beta"] * (root - tool)
    return {
        "root_entropy": root,
        "tool_entropy": tool,
        "global_share": 1 / (1 + np.exp(-difference)),
        "initial_rollouts": num_from_prompt(
            jnp.asarray(root), jnp.asarray(tool), hyper["budget"], hyper["beta"], tolerance=1e-4
        ),
        "damping": damping,
        "delta_entropy": delta,
        "branch_prob": np.where(mask, chance, 0),
    }
