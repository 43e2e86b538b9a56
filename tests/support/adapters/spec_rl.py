"""The vectors of SPEC-RL: drafts of the old policy, verified by the new one."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods.off_policy.spec_rl import (
    acceptance,
    accepted_prefix,
    emitted_distance,
    expected_prefix,
)

LEFT_OUT = {}
GOLDEN_RATIO = 0.6180339887498949


def all_logp(logits):
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    rows, width = data["mask"].shape
    length = np.asarray(batch.length)
    uniform = (np.arange(1, rows * width + 1).reshape(rows, width) * GOLDEN_RATIO) % 1
    old, new = all_logp(data["old_logits"]), all_logp(data["logits"])
    log_ratio = on_mask(np.asarray(golden.stats(case).logp - batch.old_logp), batch)
    found = {"log_ratio": log_ratio}
    for suffix, lenience in (("", hyper["bias"]), ("_strict", 0.0)):
        survival, expected = expected_prefix(log_ratio, length, lenience)
        cut = accepted_prefix(log_ratio, length, uniform, lenience)
        found |= {
            f"accept_prob{suffix}": on_mask(acceptance(log_ratio, lenience), batch),
            f"survival{suffix}": survival,
            f"expected_prefix{suffix}": expected,
            f"cut{suffix}": cut,
            f"full_reuse{suffix}": cut == length,
            f"reused{suffix}": np.arange(width)[None] < cut[:, None],
            f"new_budget{suffix}": width - cut,
            f"emitted_tv{suffix}": on_mask(emitted_distance(new, old, lenience), batch),
        }
    return found
