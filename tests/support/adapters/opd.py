"""OPD's vectors: the policy gradient and the exact divergence."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask, only

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import statistic_penalty

CLIPPED = "the clipped form for several updates per batch, which the method does not have"
LEFT_OUT = {"frozen_advantages": CLIPPED, "loss_ppo": CLIPPED, "dlogits_ppo": CLIPPED}


def outputs(case, hyper):
    done = golden.evaluate(recipe("opd"), case)

    data = golden.inputs(case)

    def stats_of(logits):
        return golden.token_stats(logits, np.asarray(data["tokens"]), data["teacher_logits"])

    exact = golden.evaluate(only(statistic_penalty(1.0, "kl")), case, stats_of=stats_of)
    return {
        **done.outputs(),
        **exact.outputs("_exact"),
        "token_reward": done.signals.advantage,
        "exact_reverse_kl": on_mask(
            stats_of(jnp.asarray(data["logits"])).records["kl"], done.batch
        ),
    }
