"""DSDR's vectors; the mean of `hidden` is the embedding, token ids are the formulas."""

import golden_vectors as golden
from adapters.common import only

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.dsdr import (
    diversity,
    diversity_weighted_entropy,
    diversity_weights,
    formula_uniqueness,
    semantic_distance,
)
from rlvr_jax.types import is_correct


def outputs(case, hyper):
    made = {
        "reward_coefficient": hyper["lam_global"],
        "temperature": hyper["tau"],
        "clip_low": hyper["clip_low"],
        "clip_high": hyper["clip_high"],
        "epsilon": hyper["eps"],
    }
    done = golden.evaluate(recipe("dsdr", entropy_coefficient=hyper["lam_local"], **made), case)
    plain = golden.evaluate(recipe("dsdr", entropy_coefficient=0.0, **made), case)
    local = golden.evaluate(only(diversity_weighted_entropy(-1.0, hyper["tau"])), case)
    batch = done.batch
    correct = is_correct(batch.outcome)
    scores = diversity(batch)
    return {
        **done.outputs(),
        "semantic": semantic_distance(batch.records["embedding"], correct, batch.group),
        "uniqueness": formula_uniqueness(batch.records["formulas"], correct, batch.group),
        "diversity": scores,
        "reward": batch.reward,
        "local_weight": diversity_weights(scores, correct, batch.group, hyper["tau"]),
        "token_loss": plain.token_loss,
        "pg_loss": plain.loss,
        "local": local.loss,
        "dlogits_local": local.dlogits,
    }
