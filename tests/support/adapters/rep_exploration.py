"""The vectors of representation-based exploration: features are the mean of `hidden`."""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.methods import recipe
from rlvr_jax.methods.exploration.rep_exploration import leave_one_out_leverage, leverage
from rlvr_jax.objectives import group_count


def outputs(case, hyper):
    settings = {"ridge": hyper["lam"], "coefficient": hyper["beta"], "epsilon": hyper["eps"]}
    done = golden.evaluate(recipe("rep_exploration", **settings), case)
    alone = golden.evaluate(recipe("rep_exploration", others=True, **settings), case)
    batch = done.batch
    own = leverage(batch.records["embedding"], batch.group, hyper["lam"])
    return {
        "feature": batch.records["embedding"],
        "leverage": own,
        "leave_one_out": leave_one_out_leverage(own),
        "bonus_on": jnp.asarray(group_count(batch.group, batch.outcome > 0.5) > 0),
        "reward": done.batch.reward,
        "advantages": done.signals.advantage,
        "reward_loo": alone.batch.reward,
        "advantages_loo": alone.signals.advantage,
    }
