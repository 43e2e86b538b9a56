"""GDPO: normalizes each of several rewards separately, then standardizes their sum over the batch.

"GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL Optimization",
https://github.com/NVlabs/GDPO

    a_ik = (x_ik - mean) / (std + 1e-4) over the group, for each reward k
    A_i  = s_i / (std + 1e-4) over the batch, s_i = Σ_k w_k a_ik, whose mean is 0
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) / Σ n_i

If rewards were summed first, different rewards with one total would have the same advantage. The
batch step makes the scale independent of the number of rewards. In a group in which no reward
differs, A is exactly 0. The authors also center in the batch step, which only adds rounding: each
a_k sums to 0 over its group. This is the form of their TRL code; their verl code uses 1e-6 and
whitens over tokens. A reward of NaN does not apply and is left out of its group; the authors' code
reads it as 0. The clip of 0.2 is GRPO's.

Left out: easy rewards that count only if a hard reward is earned.
Reports: tool calls (Qwen2.5-1.5B-Instruct), maths and code: above GRPO throughout. The format is
learned where GRPO stops improving (no numbers).
Traps: A reward of small spread is amplified to full size, and a constant reward has no effect. With
one reward, the method is GRPO scaled over the batch. In verl's form, long responses weigh more.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives import Transform, batch_std, group_has_tokens, group_z_score
from rlvr_jax.objectives.advantages.group_relative import group_of_one_remark, rollout_advantage
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, Rows, part, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


@part
def decoupled_normalized(
    weights: Sequence[float] | None = None, epsilon: Epsilon = 1e-4
) -> Transform:
    """The weighted sum of `component_advantages`, standardized over the rollouts of the batch.

    Raises:
      ValueError: no weights, or in the loss not one weight per reward.
    """
    records = ()
    if weights is not None:
        if not len(weights):
            raise ValueError("decoupled_normalized: weights must be numbers, got none")
        records = (("component_rewards", len(weights)),)

    def advantage(rollouts):
        group = rollouts.group
        own = component_advantages(rollouts.records["component_rewards"], group, epsilon)
        total = weighted_sum(own, weights)
        counted = group_has_tokens(rollouts.mask, group)
        return total / (batch_std(total, group, counted) + epsilon)

    reads = {"component_rewards"}
    transform = rollout_advantage(advantage, reads=reads, remark=group_of_one_remark)
    return replace(transform, records=records)


def component_advantages(
    component_rewards: Float[Array, "B K"], group: Int[Array, "B"], epsilon: float
) -> Float[Array, "B K"]:
    """a_k = (x_k - mean) / (std + ε) over the group for each reward; 0 where it is NaN."""

    def of_one(values):
        applies = ~jnp.isnan(values)
        values = jnp.where(applies, values, 0)
        return jnp.where(applies, group_z_score(values, group, epsilon, applies), 0)

    return jax.vmap(of_one, in_axes=1, out_axes=1)(component_rewards)


def weighted_sum(values: Float[Array, "B K"], weights: Sequence[float] | None = None) -> Rows:
    """Σ_k w_k x_k; None: all weights are 1."""
    if weights is None:
        return jnp.sum(values, axis=1)
    if len(weights) != values.shape[1]:
        raise ValueError(
            f"weighted_sum: weights must be {values.shape[1]} numbers, one per reward,"
            f" got {len(weights)}"
        )
    return jnp.sum(values * jnp.asarray(weights, values.dtype)[None], axis=1)


def gdpo(
    weights: Sequence[float] | None = None,
    epsilon: Epsilon = 1e-4,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
) -> Recipe:
    """Computes advantages from separately normalized rewards, with a clip and the token mean.

    Args:
      weights: one weight per reward (w); None: all 1.
    """
    advantage = decoupled_normalized(weights, epsilon)
    return Recipe(objective=clipped_objective(clip_low, clip_high, advantage=advantage))


METHOD = Method(
    gdpo,
    changes="advantage",
    baseline="signal",
    shown=LOSS_ON_BRACKETS,
    # A correct answer, and half of it for a response that the policy ended: with a fifth, one of
    # two seeds ended none (DEVLOG.md).
    presets={"arithmetic": {"hyperparameters": ("weights=1,0.5",)}},
)
