"""SCOPE's vectors: what stands behind the right beginning stands for the teacher's continuation."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.experience.stages.rounds.first_errors import first_incorrect_step, repairable
from rlvr_jax.objectives import TEACHER
from rlvr_jax.types import replace


def outputs(case, hyper):
    method = recipe_with(
        hyper, "scope", incorrect_below=hyper["wrong_below"], gamma=hyper["shape_gamma"]
    )
    batch = golden.rollouts(case)
    steps = [
        np.asarray(x) for x in (batch.records["step"], batch.records["process_reward"], batch.mask)
    ]
    can, start = repairable(golden.experience_batch(batch), hyper["wrong_below"])
    salvaged = can & (start > 0)
    mask = np.asarray(batch.mask)
    beginning = np.arange(mask.shape[1])[None] < start[:, None]
    written = mask & ~beginning & salvaged[:, None]
    batch = batch.replace(
        origin=jnp.where(written, TEACHER, 0).astype(jnp.int32),
        off_policy=jnp.zeros_like(batch.records["off_policy"]),
        reward=jnp.where(salvaged, 1, batch.reward),
    )
    done = golden.evaluate(replace(method, experience=None), case, batch=batch)
    return {
        **done.outputs(),
        "first_error_step": first_incorrect_step(*steps, hyper["wrong_below"]),
        "salvaged": salvaged,
        "prefix_mask": mask & beginning & salvaged[:, None],
        "teacher_mask": written,
        "reward": batch.reward,
    }
