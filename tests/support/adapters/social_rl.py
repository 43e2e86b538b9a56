"""The vectors of advantage alignment. Values of the critic stand for the advantages."""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.methods.agents.social_rl import (
    aligned_with_partner,
    alignment_term,
    partner_row,
    past_mean,
)
from rlvr_jax.methods.baselines.rloo import leave_one_out
from rlvr_jax.objectives import Transform, objective, reinforce, token_mean
from rlvr_jax.types import Recipe, replace

DISCOUNTED = "the paper's discounted sum; the method has the mean of the released code"
LEFT_OUT = {"term_discounted": DISCOUNTED, "aligned_discounted": DISCOUNTED}


def outputs(case, hyper):
    def run(advantage, batch=None, soft=False):
        own = objective(advantage, surrogate=reinforce(), aggregation=token_mean())
        return golden.evaluate(Recipe(own), case, soft, batch=batch).signals.advantage

    def values(signals, context, state):
        return replace(signals, advantage=context.rollouts.records["values"]), state, {}

    given = Transform(values, reads={"values"})
    batch = golden.rollouts(case)
    # Every token is a turn.
    turn = jnp.broadcast_to(jnp.arange(batch.mask.shape[1], dtype=jnp.int32), batch.mask.shape)
    advantage = run(given)
    partner = partner_row(batch.group, batch.rollout_id)

    def on_own_mask(array):
        return jnp.where(batch.mask, array, 0)

    means = past_mean(advantage)
    return {
        "past_mean": on_own_mask(means),
        "term": on_own_mask(alignment_term(means, advantage, partner)),
        "aligned": run(aligned_with_partner(given, hyper["weight"]), batch.replace(turn=turn)),
        "group_relative": run(leave_one_out(), soft=True),
    }
