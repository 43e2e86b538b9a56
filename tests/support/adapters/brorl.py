"""The vectors of BroRL: the mass balance of the first tokens of each group, for 1 to N samples."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.analysis.updates.mass_balance import mass_balance


def outputs(case, hyper):
    data = golden.inputs(case)
    size = int(data["group_size"])
    logits = data["logits"][::size, 0]
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    ids = np.arange(p.shape[-1])
    first = data["tokens"][:, 0].reshape(-1, size)
    # After k samples, what is among the first k.
    sampled = np.cumsum(first[:, :, None] == ids, axis=1) > 0
    found = mass_balance(
        np.broadcast_to(p[:, None], sampled.shape),
        sampled,
        ids % 2 == 0,
        np.broadcast_to(np.arange(1, size + 1), first.shape),
        correct_reward=hyper["r_correct"],
        incorrect_reward=hyper["r_wrong"],
        learning_rate=hyper["lr"],
    )
    parts = (*found[:5], found.baseline, found.correct_mass)
    return {
        "sampled_correct": found.sampled_correct,
        "sampled_wrong": found.sampled_incorrect,
        "unsampled": found.unsampled,
        "change": found.change,
        "change_direct": found.direct,
        "dz": found.step,
        "parts": np.stack(parts, axis=-1),
    }
