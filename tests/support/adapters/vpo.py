"""VPO's vectors."""

import golden_vectors as golden
from adapters.common import only, pairs

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.vpo import chosen_rows, off_policy_rows
from rlvr_jax.objectives.regularizers.preferences import implicit_reward_loss, log_ratio_sum


def outputs(case, hyper):
    batch, logp = golden.rollouts(case), golden.stats(case).logp
    log_ratio = log_ratio_sum(logp, batch.reference_logp, batch.mask)
    chosen, rejected = pairs(batch)
    found = {
        "log_ratio": log_ratio,
        "chosen": chosen,
        "rejected": rejected,
        "dpo": golden.evaluate(only(implicit_reward_loss(hyper["beta"])), case).loss,
    }
    forms = {
        "online": (hyper["alpha"], off_policy_rows),
        "offline": (-hyper["alpha"], off_policy_rows),
        "offline_chosen": (-hyper["alpha"], chosen_rows),
    }
    for name, (coefficient, rows) in forms.items():
        vpo = recipe("vpo", scale=hyper["beta"], value_coefficient=coefficient, calibration=rows)
        done = golden.evaluate(vpo, case)
        suffix = "_chosen" if rows is chosen_rows else ""
        found |= {
            **done.outputs(f"_{name}"),
            f"value{suffix}": done.metrics["induced_value"],
        }
    return found
