"""The vectors of DARS."""

import functools

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import per_group

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.depth_breadth_dars import (
    budget_for_hard,
    extra_rollouts,
    total_advantage,
)

LEFT_OUT = {}
TABLE_SIZE = 8  # of the vectors, with these limits
TABLE_LIMITS = {"equal": 32, "hardness": 64}


def outputs(case, hyper):
    method = recipe("depth_breadth_dars", clip_low=hyper["clip_low"], clip_high=hyper["clip_high"])
    done = golden.evaluate(method, case)
    batch = golden.rollouts(case)
    given = (batch.outcome, batch.group)
    found = {
        "cumulative": per_group(total_advantage(*given), case),
        "cumulative_std": per_group(total_advantage(*given, normalized=True), case),
        "keep": done.batch.mask.any(axis=1),
        "advantages": done.signals.advantage,
        "token_loss": done.token_loss,
        "loss": done.loss,
        "dlogits": done.dlogits,
    }
    outcomes = golden.experience_batch(batch).outcomes()
    for name, by_hardness in (("equal", False), ("hardness", True)):
        for suffix, normalized in (("", False), ("_std", True)):
            count = functools.partial(
                extra_rollouts, by_hardness=by_hardness, normalized=normalized
            )
            every = jnp.arange(TABLE_SIZE + 1)
            budget = budget_for_hard(by_hardness, normalized)
            found |= {
                f"extra_{name}{suffix}": budget(outcomes, hyper["n_max"]),
                f"table_{name}{suffix}": count(every, TABLE_SIZE, TABLE_LIMITS[name]),
            }
    return found
