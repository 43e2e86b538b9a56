"""ROVER: the logits become the value of the uniform policy, by regression on the next token.

He et al. 2025, "Random Policy Valuation is Enough for LLM Reasoning with Verifiable Rewards",
https://github.com/tinnerhrhe/ROVER

    q_t  = ρ (logp_t - old_logp_t);  v_t = ρ (m_t - m_t^old), m the mean log-prob over V
    loss = Σ (q_t - sg(R_i - mean + v_{t+1}))² / Σ n_i

ρ is `scale`; 1 is the authors' default. At the first update q and v are 0, and the method is
REINFORCE with a mean baseline. The authors' scripts for mathematics use `group_normalized` instead
of `group_centered`; the paper and the countdown code do not. A group of one has advantage 0. In the
authors' code, its advantage is its reward.

Left out: the temperature at which the rollouts are sampled.
Reports: Qwen3-8B base on competition maths: 8.2 points of pass@1 and 16.8 of pass@256 over strong
RL. Diversity is 17.6 % higher.
Traps: With one update per batch, it is REINFORCE with a mean baseline. In later updates, groups of
equal rewards pull q towards v, the old policy. The KL of the released maths code has no gradient.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives import group_centered, objective, part, token_mean, with_ratio
from rlvr_jax.objectives.algebra.parts import Surrogate, at_one_update
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe
from rlvr_jax.types.hyperparameters import NonNegative, Positive


@part
def uniform_value_regression(scale: Positive, next_scale: NonNegative) -> Surrogate:
    """(q_t - sg(A_t + c v_{t+1}))², with gradient only through q_t."""

    def loss(signals, context):
        stats, rollouts = context.stats, context.rollouts
        mean_logp = stats.records["mean_logit"] - stats.records["logsumexp"]
        values = scale * (
            mean_logp - (rollouts.records["old_mean_logit"] - rollouts.records["old_logsumexp"])
        )
        target = signals.advantage + next_scale * next_value(values, signals.mask)
        change = scale * (stats.logp - context.old_logp)
        return (change - jax.lax.stop_gradient(target)) ** 2

    remark = at_one_update("is REINFORCE: with one update per batch no value has changed.")
    reads = {"logp", "mean_logit", "logsumexp", "old_mean_logit", "old_logsumexp"}
    return Surrogate(with_ratio(), loss, remark, frozenset(reads))


def next_value(values: Float[Array, "B T"], mask: Bool[Array, "B T"]) -> Float[Array, "B T"]:
    """The value at the next position, 0 where that is not on the mask."""
    return jnp.pad(jnp.where(mask, values, 0)[:, 1:], ((0, 0), (0, 1)))


def rover(scale: Positive = 1.0, next_scale: NonNegative = 1.0) -> Recipe:
    """Fits the log-ratio of each token to the centered reward plus the next value.

    Args:
      scale: change of value per nat of the log ratio (ρ).
      next_scale: weight of the next value (c); the paper's is 1.
    """
    advantage = group_centered()
    surrogate = uniform_value_regression(scale, next_scale)
    return Recipe(objective(advantage=advantage, surrogate=surrogate, aggregation=token_mean()))


METHOD = Method(rover, changes="advantage, surrogate", shown=LOSS_ON_BRACKETS)
