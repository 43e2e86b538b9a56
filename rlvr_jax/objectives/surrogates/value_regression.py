"""Learning the values of the uniform policy in the logits of the policy itself.

In a tree with a reward at its leaves, sampling in proportion to exp of the uniform policy's value
already finds right leaves. So that value is learned, by regression of each token on what follows:

    q_t = ρ (logp_t - old_logp_t)          change of the token's value since it was sampled
    v_t = ρ (m_t - m_t^old)                change of the uniform mean, m the mean log-prob over V
    q_t → A_t + v_{t+1}, v = 0 after the last token

Source: He et al. 2025, code at https://github.com/tinnerhrhe/ROVER.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Surrogate
from rlvr_jax.objectives.statistics.ratios import token_ratio
from rlvr_jax.types import Rollouts, TokenStats, replace
from rlvr_jax.types.hyperparameters import NonNegative, Positive
from rlvr_jax.types.parts import part

__all__ = ["next_value", "uniform_value", "uniform_value_regression", "value_target"]


def uniform_value(stats: TokenStats, rollouts: Rollouts, scale: float) -> Float[Array, "B T"]:
    """v_t = ρ (m_t - m_t^old), the change of the mean log-prob over the vocabulary.

    Args:
      stats: mean_logit and logsumexp are read.
      rollouts: old_mean_logit and old_logsumexp are read.
      scale: ρ.
    """
    mean_logp = stats.mean_logit - stats.logsumexp
    return scale * (mean_logp - (rollouts.old_mean_logit - rollouts.old_logsumexp))


def next_value(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B T"]:
    """The value at the following position, 0 where that is not on the mask."""
    return jnp.pad(jnp.where(mask, values, 0)[:, 1:], ((0, 0), (0, 1)))


def value_target(
    advantage: Float[Array, "B T"],
    values: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    next_scale: float,
) -> Float[Array, "B T"]:
    """A_t + c v_{t+1}: what the change of a token's value is fitted to.

    Args:
      advantage: A.
      values: v, by `uniform_value`.
      mask: the tokens that count.
      next_scale: c, weight of the following value.
    """
    return advantage + next_scale * next_value(values, mask)


@part
def uniform_value_regression(scale: Positive, next_scale: NonNegative) -> Surrogate:
    """(q_t - sg(A_t + c v_{t+1}))², with gradient through q_t alone.

    Args:
      scale: ρ, positive.
      next_scale: c, weight of the following value, at least 0.
    Raises:
      ValueError: scale not positive, or a negative next_scale.
    """

    def prepare(signals, context):
        own = token_ratio(context.stats.logp, context.old_logp, signals.mask)
        return replace(signals, ratio=own)

    def loss(signals, context):
        values = uniform_value(context.stats, context.rollouts, scale)
        target = value_target(signals.advantage, values, signals.mask, next_scale)
        change = scale * (context.stats.logp - context.old_logp)
        return (change - jax.lax.stop_gradient(target)) ** 2

    reads = {"logp", "mean_logit", "logsumexp", "old_mean_logit", "old_logsumexp"}

    def remark(plan):
        if plan.updates_per_batch == 1:
            return "is REINFORCE: with one update per batch no value has changed."
        return None

    return Surrogate(prepare, loss, remark, frozenset(reads))
