"""The vectors of weighted GRPO on pairs of prompts."""

import functools

import golden_vectors as golden
from adapters.common import recipe_with

from rlvr_jax.methods.baselines.w_grpo_pairing import is_rare, pair_normalized
from rlvr_jax.objectives.advantages.group_relative import group_centered, group_normalized

LEFT_OUT = {
    "pass_rate": "the mean outcome of a group",
    "closed_form": "the limit of `group_normalized` for ε = 0",
}


def outputs(case, hyper):
    estimators = {
        "": functools.partial(group_normalized, hyper["eps"]),
        "_pooled": functools.partial(pair_normalized, hyper["eps"]),
        "_centred": group_centered,
    }
    outcomes = golden.experience_batch(golden.rollouts(case)).outcomes()
    correct = (outcomes > 0.5).sum(axis=1)
    found = {
        "hard_but_solvable": is_rare(correct, hyper["c"]),
        "easy_but_brittle": is_rare(outcomes.shape[1] - correct, hyper["c"]),
    }
    for suffix, estimator in estimators.items():
        method = recipe_with(hyper, "w_grpo_pairing", estimator=estimator)
        done = golden.evaluate(method, case)
        found |= {
            **done.outputs(suffix),
            "mapped": done.batch.reward,
        }
    return found
