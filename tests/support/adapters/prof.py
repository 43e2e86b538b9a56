"""The vectors of PROF: two of four rows of a group are kept, rounded up to an even number."""

import math

import golden_vectors as golden
import numpy as np

from rlvr_jax.methods import recipe
from rlvr_jax.methods.credit.prof import consistency, step_means


def outputs(case, hyper):
    settings = {
        "penalty": hyper["penalty"],
        "most_steps": hyper["max_steps"],
        "clip_low": hyper["clip"],
        "clip_high": hyper["clip"],
        "epsilon": hyper["std_eps"],
    }
    size = int(golden.inputs(case)["group_size"])
    number = 2 * math.ceil(size / 4)
    done = golden.evaluate(recipe("prof", **settings), case, samples=number)
    by_right = golden.evaluate(
        recipe("prof", rank_incorrect=False, **settings), case, samples=number
    )
    batch = golden.experience_batch(golden.rollouts(case)).rollouts
    correct = batch.outcome > 0.5
    mean, steps = step_means(batch)
    kept = np.asarray(done.batch.mask.any(axis=1))
    return {
        **done.outputs(),
        "step_mean": mean,
        "steps": steps,
        "consistency": consistency(mean, steps, correct, hyper["penalty"], hyper["max_steps"]),
        "k_plus": (kept & correct).reshape(-1, size).sum(axis=1),
        "keep": kept,
        "keep_correct": np.asarray(by_right.batch.mask.any(axis=1)) & correct,
    }
