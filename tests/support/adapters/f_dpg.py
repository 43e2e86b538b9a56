"""f-DPG's vectors: six divergences at the first call, where the baseline is the given one."""

import golden_vectors as golden
import numpy as np
from adapters.common import per_rollout

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping import f_dpg
from rlvr_jax.objectives import has_tokens, masked_sum

LEFT_OUT = {"log_t": "the argument of the pseudo-rewards, which are compared"}
DIVERGENCES = {
    "kl": f_dpg.target_kl,
    "reverse_kl": f_dpg.target_reverse_kl,
    "js": f_dpg.target_jensen_shannon,
    "tv": f_dpg.target_total_variation,
    "chi2": f_dpg.target_chi_squared,
    "reverse_chi2": f_dpg.target_reverse_chi_squared,
}


def outputs(case, hyper):
    batch, logp, beta = golden.rollouts(case), golden.stats(case).logp, hyper["beta"]
    sums = [
        masked_sum(values, batch.mask, axis=1)
        for values in (logp, batch.old_logp, batch.reference_logp)
    ]
    written = has_tokens(batch.mask)
    log_z = f_dpg.log_partition(sums[2] + batch.reward / beta - sums[1], batch.group, written)
    _, first = np.unique(batch.group, return_index=True)
    ratio = f_dpg.product_ratio(logp, batch.old_logp, batch.mask)
    found = {
        "seq_logp": sums[0],
        "log_z": log_z[first],
        "importance": per_rollout(ratio, batch, empty=1),
    }
    # The mean of nothing, at which the reference starts.
    assert hyper["baseline"] == 0
    for name, divergence in DIVERGENCES.items():
        own = recipe("f_dpg", temperature=beta, divergence=divergence)
        done = golden.evaluate(own, case)
        found |= {
            **done.outputs(f"_{name}"),
            f"reward_{name}": per_rollout(done.signals.advantage, batch),
            f"next_baseline_{name}": done.state["pseudo_reward"].mean,
        }
    return found
