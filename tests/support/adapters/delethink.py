"""The vectors of Delethink: rows two by two are the chunks of an answer; the reference policy plays
the sampler."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import both, on_mask, recipe_with

from rlvr_jax.methods.credit.delethink import rows_per_trace, trace_tokens
from rlvr_jax.objectives import clamped_token_ratio, trace_ids


def traced(case, soft=False):
    """The record with its traces, numbered through the batch."""
    batch = golden.rollouts(case, soft)
    size = int(golden.inputs(case)["group_size"])
    rows = np.arange(len(batch.group))
    trace = rows // size * (-(-size // 2)) + rows % size // 2
    return batch.replace(trace=jnp.asarray(trace, jnp.int32), behaviour_logp=batch.reference_logp)


def outputs(case, hyper):
    batch = traced(case)
    ids = trace_ids(batch.records["trace"], batch.rollout_id)
    ratio = clamped_token_ratio(batch.old_logp, batch.behaviour_logp, batch.mask)
    return losses(case, hyper) | {
        "trace_id": ids,
        "trace_length": trace_tokens(batch.mask, ids),
        "tis_weight": on_mask(np.minimum(ratio, hyper["tis_cap"]), batch),
    }


@both
def losses(case, hyper, soft):
    batch = traced(case, soft)
    method = recipe_with(hyper, "delethink", cap=hyper["tis_cap"])
    done = golden.evaluate(method, case, batch=batch)
    # Ours is weighed by the trace already, which the vectors do as they aggregate.
    ids = trace_ids(batch.records["trace"], batch.rollout_id)
    fraction = rows_per_trace(batch.mask, ids, batch.rollout_id, done.loss.dtype)
    length = trace_tokens(batch.mask, ids).astype(done.loss.dtype)
    return {
        **done.outputs(),
        "token_loss": done.token_loss * (length / fraction)[:, None],
    }
