"""T-PPO's vectors: the window has cut the rows of another policy."""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.methods import recipe
from rlvr_jax.methods.clipping.t_ppo import critic_targets, extended_advantages
from rlvr_jax.objectives import masked_mean
from rlvr_jax.objectives.advantages.critics import value_loss
from rlvr_jax.types import replace

LEFT_OUT = {}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    batch = replace(batch, truncated=batch.off_policy)
    own = recipe(
        "t_ppo",
        discount=hyper["gamma"],
        trace_decay=hyper["lam"],
        clip_low=hyper["clip_low"],
        clip_high=hyper["clip_high"],
    )
    done = golden.evaluate(own, case, batch=batch)
    known = (batch.reward, batch.values, batch.mask, batch.truncated, hyper["gamma"])
    returns, finished = critic_targets(batch.reward, batch.mask, batch.truncated, hyper["gamma"])
    errors = value_loss(batch.values, batch.values, returns, clip=jnp.inf)
    return {
        "deltas": extended_advantages(*known, trace_decay=0.0),
        "advantages": done.signals.advantage,
        "returns": returns,
        "policy_mask": done.signals.mask,
        "value_mask": finished,
        "loss": done.loss,
        "value_loss": masked_mean(errors, finished),
        "dlogits": done.dlogits,
    }
