"""SRPO's vectors: the teacher's logits are those of the policy that was shown another answer."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, recipe_with

from rlvr_jax.methods.distillation.srpo import failures


def outputs(case, hyper):
    data = golden.inputs(case)

    def stats_of(logits):
        return golden.token_stats(logits, data["tokens"], data["teacher_logits"])

    method = recipe_with(hyper, "srpo", beta=hyper["entropy_beta"])
    done = golden.evaluate(method, case, stats_of=stats_of)
    batch = done.batch
    stats = stats_of(jnp.asarray(data["logits"]))
    routed = np.asarray(failures(hyper["success"])(batch))
    there = routed & np.asarray(batch.mask)
    return {
        **done.outputs(),
        "route": routed[:, 0],
        "teacher_entropy": on_mask(stats.records["teacher_entropy"], batch),
        "distil_weight": np.where(there, done.signals.weight, 0),
        "kl": np.where(there, stats.records["kl"], 0),
        "advantages": np.where(routed, 0, done.signals.advantage),
    }
