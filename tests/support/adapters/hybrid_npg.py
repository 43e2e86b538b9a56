"""HNPG's vectors: advantages, and the critic's targets, losses and gradient."""

import golden_vectors as golden
import jax
import jax.numpy as jnp
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.off_policy.hybrid_npg import hybrid_critic
from rlvr_jax.objectives import discounted_returns, token_rewards, value_loss


def outputs(case, hyper):
    method = recipe("hybrid_npg", discount=hyper["gamma"], trace_decay=hyper["tau"])
    done = golden.evaluate(method, case)
    batch = done.batch
    mask, other = batch.mask, batch.records["off_policy"]
    rewards = token_rewards(batch.reward, mask)
    returns = discounted_returns(rewards, mask, hyper["gamma"])

    critic = hybrid_critic(hyper["gamma"])
    targets, weights = critic.returns(batch), critic.weigh(batch)

    def loss(values):
        """The critic's loss as in training, and its sums over both kinds of rows."""
        errors = weights * value_loss(values, batch.records["values"], targets, critic.clip)
        own, others = (
            jnp.sum(jnp.where(mask & rows[:, None], errors, 0)) / jnp.sum(mask, dtype=values.dtype)
            for rows in (~other, other)
        )
        return own + others, (own, others)

    gradient, (own, others) = jax.grad(loss, has_aux=True)(batch.records["values"])
    return {
        "returns": returns,
        "advantages": on_mask(done.signals.advantage, done.signals),
        "off_targets": np.where(other[:, None], targets, 0),
        "loss_on": own,
        "loss_off": others,
        "critic_loss": own + others,
        "dvalues": gradient,
    }
