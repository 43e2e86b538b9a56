"""SRPO's vectors: the teacher's logits are those of the policy that was shown another answer."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.distillation.srpo import failures

LEFT_OUT = {}


def outputs(case, hyper):
    data = golden.inputs(case)

    def stats_of(logits):
        return golden.token_stats(logits, data["tokens"], data["teacher_logits"])

    method = recipe(
        "srpo",
        beta=hyper["entropy_beta"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
        success=hyper["success"],
    )
    done = golden.evaluate(method, case, stats_of=stats_of)
    batch = done.batch
    stats = stats_of(jnp.asarray(data["logits"]))
    routed = np.asarray(failures(hyper["success"])(batch))
    there = routed & np.asarray(batch.mask)
    return {
        "route": routed[:, 0],
        "teacher_entropy": on_mask(stats.records["teacher_entropy"], batch),
        "distil_weight": np.where(there, done.signals.weight, 0),
        "kl": np.where(there, stats.records["kl"], 0),
        "advantages": np.where(routed, 0, done.signals.advantage),
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
