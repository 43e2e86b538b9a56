"""The vectors of SPEC-RL: drafts of the old policy, verified by the new one."""

import golden_vectors as golden
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods.off_policy.spec_rl import accepted_prefix

FORECAST = "a forecast of the reuse, which no public function makes"
LEFT_OUT = {
    f"{name}{suffix}": FORECAST
    for name in ("accept_prob", "survival", "expected_prefix", "emitted_tv")
    for suffix in ("", "_strict")
}
GOLDEN_RATIO = 0.6180339887498949


def outputs(case, hyper):
    data, batch = golden.inputs(case), golden.rollouts(case)
    rows, width = data["mask"].shape
    length = np.asarray(batch.length)
    uniform = (np.arange(1, rows * width + 1).reshape(rows, width) * GOLDEN_RATIO) % 1
    log_ratio = on_mask(np.asarray(golden.stats(case).logp - batch.old_logp), batch)
    found = {"log_ratio": log_ratio}
    for suffix, lenience in (("", hyper["bias"]), ("_strict", 0.0)):
        cut = accepted_prefix(log_ratio, length, uniform, lenience)
        found |= {
            f"cut{suffix}": cut,
            f"full_reuse{suffix}": cut == length,
            f"reused{suffix}": np.arange(width)[None] < cut[:, None],
            f"new_budget{suffix}": width - cut,
        }
    return found
