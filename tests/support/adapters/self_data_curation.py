"""SELF's vectors: the second row of a group is its greedy response."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import by_group, on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.types import replace

LEFT_OUT = {"keep": "the prompts that `screen` requests anew; tests/runs walk it"}


def outputs(case, hyper):
    data = golden.inputs(case)
    batch = golden.rollouts(case)
    keep = by_group(data["rewards"], case)[:, 1] < 1
    rows = keep[np.asarray(batch.group)]
    kept = batch.replace(mask=batch.mask & jnp.asarray(rows)[:, None])

    def stats_of(logits):
        return golden.token_stats(logits, data["tokens"], data["ref_logits"])

    def evaluated(weight):
        trust = {"clip_low": hyper["clip"], "clip_high": hyper["clip"]}
        method = recipe(
            "self_data_curation", kl_coefficient=weight, epsilon=hyper["std_eps"], **trust
        )
        method = replace(method, experience=None)
        return golden.evaluate(method, case, stats_of=stats_of, batch=kept)

    done, plain = evaluated(hyper["kl_coef"]), evaluated(0.0)
    divergence = stats_of(jnp.asarray(data["logits"])).records["reverse_kl"]
    return {
        **done.outputs(),
        "forward_kl": on_mask(divergence, kept),
        "pg_loss": plain.loss,
        "dlogits_pg": plain.dlogits,
    }
