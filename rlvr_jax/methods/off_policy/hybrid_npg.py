"""HNPG: on-policy policy gradients with a critic that also learns from offline data.

"Offline Data Enhanced On-Policy Policy Gradient with Provable Guarantees",
https://github.com/YifeiZhou02/HNPG

    Â_t  = δ_t + τ Â_{t+1},  δ_t = r_t + V_{t+1} - V_t, the reward on the last token
    loss = -Σ Â ρ / number of on-policy tokens
    critic: mean_on (V - G)² + mean_off (V - (r + V_{t+1}))²

Rows that are `off_policy` train the critic alone (`hybrid_critic_loss`), whose two means count
alike: they are the worked
solutions of the prompts, one in each group. The critic's targets are those of its estimates when
the batch was drawn. Discount 1 and τ = 0.97 are the authors'. Advantages are not normalised.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import add_traces, experience
from rlvr_jax.objectives.advantages.critics import Critic
from rlvr_jax.objectives.advantages.returns import (
    discounted_returns,
    generalized_advantage,
    generalized_advantages,
    token_rewards,
)
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import importance_weighted
from rlvr_jax.objectives.transforms.origins import drop_off_policy
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import Discount, TraceDecay, Unit
from rlvr_jax.types.parts import part


class HybridCriticLoss(NamedTuple):
    """The loss of a critic, and its two parts, each the mean of a squared error without a ½."""

    total: Float[Array, ""]
    on_policy: Float[Array, ""]
    off_policy: Float[Array, ""]


def bootstrap_targets(
    rewards: Float[Array, "B T"], values: Float[Array, "B T"], mask: Bool[Array, "B T"]
) -> Float[Array, "B T"]:
    """r_t + V_{t+1}, V = 0 after the last token; 0 off the mask. No gradient.

    Args:
      rewards: r, of each token.
      values: V, of the current critic.
      mask: the tokens that count; t + 1 is the next of them.
    """
    values = jax.lax.stop_gradient(values)
    error = generalized_advantages(rewards, values, mask, discount=1.0, trace_decay=0.0)
    return jnp.where(mask, error + values, 0)


def hybrid_critic_loss(
    values: Float[Array, "B T"],
    returns: Float[Array, "B T"],
    targets: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    off_policy: Bool[Array, "B"],
) -> HybridCriticLoss:
    """mean_on (V - G)² + mean_off (V - target)², each over the tokens of its kind of rows.

    Args:
      values: V, carries the gradient.
      returns: G, read on the other rows.
      targets: `bootstrap_targets`, read on off-policy rows.
      mask: the tokens that count.
      off_policy: rows that another policy wrote.
    """
    other = off_policy[:, None]
    on_policy = masked_mean((values - returns) ** 2, mask & ~other)
    off = masked_mean((values - targets) ** 2, mask & other)
    return HybridCriticLoss(on_policy + off, on_policy, off)


@part
def hybrid_critic(discount: Unit = 1.0) -> Critic:
    """The critic that is fitted to returns on the policy's rows and to r_t + V_{t+1} on others'.

    The means over both kinds of rows count alike, however many tokens each has in an update.

    Args:
      discount: γ of the returns, in [0, 1]; the targets of other rows are not discounted.
    """

    def returns(rollouts):
        mask = rollouts.mask
        rewards = token_rewards(rollouts.reward, mask)
        own = discounted_returns(rewards, mask, discount)
        other = bootstrap_targets(rewards, jnp.where(mask, rollouts.values, 0), mask)
        return jnp.where(rollouts.off_policy[:, None], other, own)

    def weigh(rollouts):
        # The loss that is weighted has a half.
        mask, other = rollouts.mask, rollouts.off_policy[:, None]
        tokens = jnp.sum(mask, dtype=rollouts.reward.dtype)
        own, others = (jnp.maximum(jnp.sum(mask & rows), 1) for rows in (~other, other))
        return 2 * tokens / jnp.where(other, others, own).astype(tokens.dtype)

    return Critic(returns, jnp.inf, weigh=weigh)


def hybrid_npg(discount: Discount = 1.0, trace_decay: TraceDecay = 0.97) -> Recipe:
    """Generalized advantages on the unclipped ratio, for the policy's own rollouts."""
    return Recipe(
        objective=objective(
            advantage=generalized_advantage(discount=discount, trace_decay=trace_decay),
            transforms=[drop_off_policy()],
            surrogate=importance_weighted(),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[add_traces()]),
        critic=hybrid_critic(discount),
    )


METHOD = Method(
    hybrid_npg,
    "Offline Data Enhanced On-Policy Policy Gradient with Provable Guarantees",
    "https://github.com/YifeiZhou02/HNPG",
    changes="advantage, mask, surrogate, guidance",
    baseline="other",
    left_out="the TRPO step (conjugate gradient, line search), a critic for every time step,"
    " and fresh actions with advantage Q - V at offline states",
    reports=(
        "combination locks with rich observations: above a hybrid method that is off-policy alone "
        "(abstract)"
    ),
    traps=(
        "no clip and no normalization, so steps scale with the rewards; worked solutions train the "
        "critic alone and are never imitated"
    ),
)
