"""T-PPO's vectors: the rows of another policy continue in the next window."""

import golden_vectors as golden
import jax.numpy as jnp
from adapters.common import recipe_with

from rlvr_jax.objectives import masked_mean, value_loss


def outputs(case, hyper):
    batch = golden.rollouts(case)
    batch = batch.replace(truncated=batch.records["off_policy"])

    def method(trace_decay):
        return recipe_with(hyper, "t_ppo", discount=hyper["gamma"], trace_decay=trace_decay)

    own = method(hyper["lam"])
    done = golden.evaluate(own, case, batch=batch)
    returns, finished = own.critic.returns(batch), own.critic.weigh(batch) > 0
    errors = value_loss(batch.records["values"], batch.records["values"], returns, clip=jnp.inf)
    return {
        **done.outputs(),
        "deltas": golden.evaluate(method(0.0), case, batch=batch).signals.advantage,
        "returns": returns,
        "policy_mask": done.signals.mask,
        "value_mask": finished,
        "value_loss": masked_mean(errors, finished),
    }
