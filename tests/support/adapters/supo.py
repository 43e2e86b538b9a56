"""SUPO's vectors: rows two by two are the segments of an answer; one is unfinished if its last row
has nearly all tokens."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import both, recipe_with
from adapters.delethink import traced

from rlvr_jax.objectives.statistics.traces import last_of_trace, of_last_row, trace_ids


def segmented(case, soft=False):
    """The record with its answers, of which some were cut."""
    batch = traced(case, soft)
    ids = trace_ids(batch.records["trace"], batch.rollout_id)
    long = batch.mask.sum(axis=1) >= batch.mask.shape[1] - 2
    cut = of_last_row(long.astype(float), ids, batch.rollout_id) > 0
    last = last_of_trace(ids, batch.rollout_id)
    assert int(last.sum()) == len(np.unique(ids))
    reward = of_last_row(batch.reward, ids, batch.rollout_id)
    return batch.replace(truncated=jnp.asarray(cut), reward=reward, outcome=reward), ids


def outputs(case, hyper):
    batch, ids = segmented(case)
    return losses(case, hyper) | {
        "part_of": ids,
        "finished": ~batch.truncated,
        "loss_mask": batch.mask & ~batch.truncated[:, None],
    }


@both
def losses(case, hyper, soft):
    batch, _ = segmented(case, soft)
    method = recipe_with(hyper, "supo")
    done = golden.evaluate(method, case, batch=batch)
    return {
        **done.outputs(),
        "token_loss": np.where(done.signals.mask, done.token_loss, 0),
    }
