"""Interference at the current policy: the last layer alone learns, advantages are GRPO's."""

import golden_vectors as golden
import numpy as np
from adapters.common import by_group, grpo_advantages, logp_of

from rlvr_jax.analysis.updates.interference import (
    interference,
    keep_hard,
    right_answer_logp,
    row_gradients,
    winner_slope,
)


def outputs(case, hyper):
    data = golden.inputs(case)
    mask, correct = data["mask"], data["rewards"] > 0.5
    group = np.arange(len(mask)) // int(data["group_size"])
    gradients = row_gradients(data["hidden"], data["logits"], data["tokens"], mask)
    advantage = grpo_advantages(case, hyper["eps"])
    found = interference(gradients, advantage, correct, group, hyper["lr"])
    before = right_answer_logp(logp_of(case, "old_logits"), mask, correct, group)
    change = right_answer_logp(logp_of(case, "logits"), mask, correct, group) - before
    return found._asdict() | {
        "negative_share": found.negative_fraction,
        "start_logp": before,
        "logp_change": change,
        "winner_slope": winner_slope(before, change, by_group(correct, case).any(axis=1)),
        "keep_hard": keep_hard(by_group(data["rewards"], case).mean(axis=1), hyper["easy"]),
    }
