"""InT's vectors: the first wrong step stands for the one that replaced it."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np

from rlvr_jax.experience.stages.rounds.first_errors import first_incorrect_step, repairable
from rlvr_jax.methods import recipe
from rlvr_jax.methods.guidance.intervention_training import imitated_steps
from rlvr_jax.types import replace


def outputs(case, hyper):
    batch = golden.rollouts(case)
    step, score, mask = (
        np.asarray(x) for x in (batch.records["step"], batch.records["process_reward"], batch.mask)
    )
    first = first_incorrect_step(step, score, mask, hyper["wrong_below"])
    rows, _ = repairable(golden.experience_batch(batch), hyper["wrong_below"])
    kept = imitated_steps(step, mask, first) & rows[:, None]
    length = kept.sum(axis=1).astype(np.int32)
    assert (kept == (np.arange(kept.shape[1])[None] < length[:, None])).all()
    batch = batch.replace(
        mask=jnp.zeros_like(batch.mask),
        supervised=jnp.asarray(rows),
        length=jnp.asarray(length),
    )
    method = replace(recipe("intervention_training"), experience=None)
    done = golden.evaluate(method, case, batch=batch)
    return {
        **done.outputs(),
        "first_error_step": first,
        "rows": rows,
        "sft_mask": batch.supervised_tokens,
    }
