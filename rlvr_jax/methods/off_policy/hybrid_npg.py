"""HNPG: on-policy policy gradients with a critic that is also fitted to offline data.

"Offline Data Enhanced On-Policy Policy Gradient with Provable Guarantees",
https://github.com/YifeiZhou02/HNPG

    Â_t  = δ_t + τ Â_{t+1},  δ_t = r_t + V_{t+1} - V_t, the reward on the last token
    loss = -Σ Â ρ / number of on-policy tokens
    critic: mean_on (V - G)² + mean_off (V - (r + V_{t+1}))²

Rows that are `off_policy` train only the critic, whose two means count equally. They are the worked
solutions of the prompts, one in each group, and are never imitated. The critic's targets use its
estimates at sampling time. Discount 1 and τ = 0.97 (`trace_decay`) are the authors'. Advantages are
not normalized.

Left out: the TRPO step (conjugate gradient, line search); a critic for every time step; fresh
actions with advantage Q - V at offline states.
Reports: combination locks with rich observations: above a hybrid method that is only off-policy
(abstract, no numbers).
Traps: There is no clip and no normalization, so the size of a step scales with the rewards.
"""

import jax
import jax.numpy as jnp

from rlvr_jax.experience import add_traces, experience
from rlvr_jax.objectives import Critic, drop_off_policy, importance_weighted, objective, token_mean
from rlvr_jax.objectives.advantages.returns import (
    discounted_returns,
    generalized_advantage,
    generalized_advantages,
    token_rewards,
)
from rlvr_jax.types import Mask, Method, Recipe, Shown, Values, part
from rlvr_jax.types.hyperparameters import Discount, TraceDecay


@part
def hybrid_critic(discount: Discount = 1.0) -> Critic:
    """The critic that is fitted to G on the policy's rows and to r_t + V_{t+1} on off-policy rows.

    The means over both kinds of rows count equally, however many tokens each has in an update.

    Args:
      discount: γ of G; the targets of off-policy rows are not discounted.
    """

    def returns(rollouts):
        mask = rollouts.mask
        rewards = token_rewards(rollouts.reward, mask)
        own = discounted_returns(rewards, mask, discount)
        other = bootstrap_targets(rewards, jnp.where(mask, rollouts.records["values"], 0), mask)
        return jnp.where(rollouts.records["off_policy"][:, None], other, own)

    def weigh(rollouts):
        # The weighted loss has a factor ½.
        mask, other = rollouts.mask, rollouts.records["off_policy"][:, None]
        tokens = jnp.sum(mask, dtype=rollouts.reward.dtype)
        own, others = (jnp.maximum(jnp.sum(mask & rows), 1) for rows in (~other, other))
        return 2 * tokens / jnp.where(other, others, own).astype(tokens.dtype)

    return Critic(returns, jnp.inf, weigh=weigh)


def bootstrap_targets(rewards: Values, values: Values, mask: Mask) -> Values:
    """r_t + V_{t+1}, V = 0 after the last token; 0 off the mask. No gradient."""
    values = jax.lax.stop_gradient(values)
    error = generalized_advantages(rewards, values, mask, discount=1.0, trace_decay=0.0)
    return jnp.where(mask, error + values, 0)


def hybrid_npg(discount: Discount = 1.0, trace_decay: TraceDecay = 0.97) -> Recipe:
    """Applies generalized advantages to the unclipped ratio of the policy's own rollouts."""
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
    changes="advantage, mask, surrogate, guidance",
    baseline="other",
    shown=Shown("hinted_brackets:train=512", "experience/traces"),
)
