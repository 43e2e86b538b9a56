"""The vectors of weighted GRPO on pairs of prompts."""

import functools

import golden_vectors as golden
import numpy as np
from adapters.common import per_group

from rlvr_jax.methods import recipe
from rlvr_jax.methods.baselines.w_grpo_pairing import (
    easy_but_brittle,
    hard_but_solvable,
    pair_normalized,
    pass_rate,
    rare_event_advantage,
)
from rlvr_jax.objectives.advantages.group_relative import group_centered, group_normalized

LEFT_OUT = {}


def outputs(case, hyper):
    estimators = {
        "": functools.partial(group_normalized, hyper["eps"]),
        "_pooled": functools.partial(pair_normalized, hyper["eps"]),
        "_centred": group_centered,
    }
    batch = golden.rollouts(case)
    given = (batch.outcome, batch.group)
    outcomes = golden.experience_batch(batch).outcomes()
    right, answers = (outcomes > 0.5).sum(axis=1), np.full(len(outcomes), outcomes.shape[1])
    found = {
        "pass_rate": per_group(pass_rate(*given), case),
        "hard_but_solvable": hard_but_solvable(right, answers, hyper["c"]),
        "easy_but_brittle": easy_but_brittle(right, answers, hyper["c"]),
        "closed_form": rare_event_advantage(*given),
    }
    for suffix, estimator in estimators.items():
        method = recipe(
            "w_grpo_pairing",
            negative=hyper["negative"],
            estimator=estimator,
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
        )
        done = golden.evaluate(method, case)
        found |= {
            "mapped": done.batch.reward,
            f"advantages{suffix}": done.signals.advantage,
            f"token_loss{suffix}": done.token_loss,
            f"loss{suffix}": done.loss,
            f"dlogits{suffix}": done.dlogits,
        }
    return found
