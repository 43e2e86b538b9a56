"""HNPG's vectors: advantages, and the critic's targets, losses and gradient."""

import golden_vectors as golden
import jax
import numpy as np
from adapters.common import on_mask

from rlvr_jax.methods import recipe
from rlvr_jax.methods.off_policy.hybrid_npg import bootstrap_targets, hybrid_critic_loss
from rlvr_jax.objectives.advantages.returns import discounted_returns, token_rewards

LEFT_OUT = {}


def outputs(case, hyper):
    method = recipe("hybrid_npg", discount=hyper["gamma"], trace_decay=hyper["tau"])
    done = golden.evaluate(method, case)
    batch = done.batch
    mask, other = batch.mask, batch.off_policy
    rewards = token_rewards(batch.reward, mask)
    returns = discounted_returns(rewards, mask, hyper["gamma"])

    def loss(values):
        targets = bootstrap_targets(rewards, values, mask)
        parts = hybrid_critic_loss(values, returns, targets, mask, other)
        return parts.total, (parts, targets)

    gradient, (parts, targets) = jax.grad(loss, has_aux=True)(batch.values)
    return {
        "returns": returns,
        "advantages": on_mask(done.signals.advantage, done.signals),
        "off_targets": np.where(other[:, None], targets, 0),
        "loss_on": parts.on_policy,
        "loss_off": parts.off_policy,
        "critic_loss": parts.total,
        "dvalues": gradient,
    }
