"""T-PPO's vectors: the rows of another policy continue in the next window."""

import golden_vectors as golden
import jax.numpy as jnp

from rlvr_jax.methods import recipe
from rlvr_jax.objectives import masked_mean
from rlvr_jax.objectives.advantages.critics import value_loss

LEFT_OUT = {}


def outputs(case, hyper):
    batch = golden.rollouts(case)
    batch = batch.replace(truncated=batch.records["off_policy"])

    def method(trace_decay):
        return recipe(
            "t_ppo",
            discount=hyper["gamma"],
            trace_decay=trace_decay,
            clip_low=hyper["clip_low"],
            clip_high=hyper["clip_high"],
        )

    own = method(hyper["lam"])
    done = golden.evaluate(own, case, batch=batch)
    returns, finished = own.critic.returns(batch), own.critic.weigh(batch) > 0
    errors = value_loss(batch.records["values"], batch.records["values"], returns, clip=jnp.inf)
    return {
        "deltas": golden.evaluate(method(0.0), case, batch=batch).signals.advantage,
        "advantages": done.signals.advantage,
        "returns": returns,
        "policy_mask": done.signals.mask,
        "value_mask": finished,
        "loss": done.loss,
        "value_loss": masked_mean(errors, finished),
        "dlogits": done.dlogits,
    }
