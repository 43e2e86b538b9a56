"""AEPO on tools: rollouts fork after tool replies, and uncertain tokens get larger updates.

Dong et al. 2025, "Agentic Entropy-Balanced Policy Optimization", https://arxiv.org/abs/2510.14545

    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    A*   = A (1 + 0.2 z), z the standard score of the token's entropy in the batch
    loss = Σ max(-A* ρ, -A* clip(ρ, 1 - ε_low, (1 + ε_high) ρ/sg(ρ))) / Σ n_i

The dual clip bounds the loss at -3 A* where A* < 0. Above the trust region the loss has the value
of PPO's clip. Its gradient is that of a ratio frozen at the bound. The abstract limits this
gradient to tokens of high entropy. The authors' code applies it to all tokens, and this recipe
follows the code. Where z < -5, the advantage changes its sign. The authors' code computes z per
micro-batch, here z is over the batch.

Half of a prompt's rows begin at the prompt. The others fork after tool replies, by the entropies of
turns (see `aepo_rollout`). With `sensitivity`, a probe sets the number of rows that begin at the
prompt. The published scripts disable the probe. l counts all forks of a prompt, in the paper only
consecutive forks. One published version resets l when only other prompts of the batch forked.

Reports: Qwen3-14B, 1k samples, pass@1 in %: GAIA 47.6, HLE 11.2, WebWalkerQA 43.0. All are above
ARPO and GRPO, and entropy is steadier.
Traps: The cap changes gradients but not the loss, so the loss curve does not show it. One other
port keeps the gradient only on tokens of low entropy.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.experience import branch_turns, experience
from rlvr_jax.methods._tools import Tools
from rlvr_jax.objectives import Surrogate, Transform, group_normalized, masked_min, objective
from rlvr_jax.objectives.statistics.scopes import scoped_mean, scoped_std, within_batch
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import never_holds_back, ppo_clip
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, arguments_of, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, DualClip, Epsilon, Finite


@part(reads={"entropy", "batch_statistics"}, writes={"advantage"})
def scale_by_entropy(coefficient: Finite) -> Transform:
    """Raises the advantage of uncertain tokens: A* = A (1 + c z), z their `entropy_z_score`.

    There is no floor: where z < -1/c, the advantage changes its sign.

    Args:
      coefficient: weight of the z-score (c).
    Metrics: entropy_scale_min (smallest factor of an advantage).
    """

    def apply(signals, context, state):
        entropy = jax.lax.stop_gradient(context.stats.entropy)
        score = entropy_z_score(entropy, signals.mask, context.rollouts)
        scale = 1 + coefficient * score
        metrics = {"entropy_scale_min": masked_min(scale, signals.mask)}
        return replace(signals, advantage=signals.advantage * scale), state, metrics

    return apply


def entropy_z_score(
    entropy: Float[Array, "B T"], mask: Bool[Array, "B T"], rollouts: Rollouts
) -> Float[Array, "B T"]:
    """z = (H - mean) / std over the tokens of the batch, std with n - 1; 0 where all are equal."""
    sets = within_batch(rollouts)
    spread = scoped_std(entropy, mask, sets, ddof=1)
    deviation = entropy - scoped_mean(entropy, mask, sets)
    return jnp.where(mask, deviation / jnp.where(spread > 0, spread, 1), 0)


@part
def ppo_cap(low: ClipLow, high: ClipHigh, dual: DualClip) -> Surrogate:
    """PPO's clip whose upper bound keeps a gradient: the value of `ppo_clip`, another gradient.

    max(-A ρ, -A f(ρ)) with f = (1 + ε_high) ρ/sg(ρ) above the trust region. Below and inside, and
    for A < 0, it is `ppo_clip` with its dual clip.
    """
    plain = ppo_clip(low, high, dual=dual)

    def loss(signals, context):
        logp, bound = context.stats.logp, 1 + signals.clip_high
        above = (signals.ratio > bound) & (signals.advantage > 0)
        # exp(logp - sg(logp)) is ρ/sg(ρ) = 1, also where ρ overflows.
        own = bound * jnp.exp(logp - jax.lax.stop_gradient(logp))
        return jnp.where(above, -signals.advantage * own, plain.loss(signals, context))

    return Surrogate(plain.prepare, loss, never_holds_back)


@arguments_of(Tools, into="tools", tools=("python",))
@arguments_of(
    branch_turns,
    *("weight", "base", "penalty", "fraction", "sensitivity", "top", "window"),
    penalty=0.05,
)
def aepo_agentic(
    entropy_coefficient: Finite = 0.2,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    dual: DualClip = 3.0,
    epsilon: Epsilon = 1e-6,
    *,
    tools: Tools,
    **branches: Any,
) -> Recipe:
    """Combines a ratio capped from above, the token mean and entropy-scaled advantages.

    Args:
      entropy_coefficient: scale of the entropy's standard score.
    """
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            transforms=[scale_by_entropy(entropy_coefficient)],
            surrogate=ppo_cap(low=clip_low, high=clip_high, dual=dual),
            aggregation=token_mean(),
        ),
        experience=experience(draw=tools.draw(branch_turns, **branches)),
    )


METHOD = Method(
    aepo_agentic,
    changes="sampling, advantage, surrogate",
    gradient="stopped",
    shown=Shown(
        "noted_calculations", "experience/forked_rows", without={"base": 0.0, "weight": 0.0}
    ),
)
