"""Rewards that say nothing: controls to be run beside any reward, and what clipping makes of them.

Under a reward that does not depend on the rollout the advantages of a group sum to 0 and its rows
are exchangeable, so E[max(A, 0)] = E[max(-A, 0)] = μ. A token of ratio R then has in expectation

    E[J] = μ (min(R, 1 + ε_high) - max(R, 1 - ε_low))

which is 0 without a clip, and with one pulls ratios back to 1: a trust region, no signal.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.rewards.parts import Shaping
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.groups import group_count
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = [
    "clip_magnitude",
    "clip_pull",
    "damage",
    "expected_damage",
    "half_moment",
    "inverted_outcome",
    "random_reward",
]

Tokens = Float[Array, "B T"]
Rows = Float[Array, "B"]


def inverted_outcome(rollouts: Rollouts) -> Rows:
    """1 - outcome: what is wrong is paid."""
    return 1 - rollouts.outcome


@part
def random_reward(chance: Unit = 0.5) -> Shaping:
    """1 with a chance and 0 else, whatever the response says.

    A row's draw depends on the step, its prompt and its place in the group.

    Args:
      chance: γ.
    Raises:
      ValueError: chance outside [0, 1].
    """

    def apply(rollouts, state, moment):
        place = group_rank(jnp.zeros_like(rollouts.reward), rollouts.group, rollouts.rollout_id)
        # Rows without a verdict have groups of their own and are not looked at.
        prompt = jnp.asarray(moment.prompt)

        def draw(prompt, place):
            own = jax.random.fold_in(jax.random.fold_in(moment.key, prompt), place)
            return jax.random.bernoulli(own, chance)

        return jax.vmap(draw)(prompt, place).astype(rollouts.reward.dtype), state, {}

    return Shaping(apply)


def half_moment(chance: float, group_size: int, epsilon: float = 1e-6) -> float:
    """μ = E[max(A, 0)] of a row under random rewards of 0 and 1, A = (r - mean) / (std + ε).

    With k of N rows paid, std with n - 1: Σ_k P(k) (k / N) (1 - k / N) / (std_k + ε). Groups of
    equal rewards have A = 0 and count.

    Args:
      chance: γ, of a reward of 1.
      group_size: N.
      epsilon: ε.
    """
    total = 0.0
    for paid in range(1, group_size):
        share = paid / group_size
        deviation = math.sqrt(share * (1 - share) * group_size / (group_size - 1))
        ways = math.comb(group_size, paid) * chance**paid * (1 - chance) ** (group_size - paid)
        total += ways * share * (1 - share) / (deviation + epsilon)
    return total


def clip_pull(ratio: Tokens, low: float, high: float, moment: float) -> Tokens:
    """μ R (1[R < 1 - ε_low] - 1[R > 1 + ε_high]): the coefficient of ∇ log p in E[∇J]."""
    outside = (ratio < 1 - low).astype(ratio.dtype) - (ratio > 1 + high).astype(ratio.dtype)
    return moment * ratio * outside


def clip_magnitude(ratio: Tokens, low: float, high: float, moment: float) -> Tokens:
    """E|J - R A| = μ (max(R - 1 - ε_high, 0) + max(1 - ε_low - R, 0)): what the clip takes away.

    Beside it stands what there is without one, E|R A| = 2 μ R.
    """
    return moment * (jnp.maximum(ratio - 1 - high, 0) + jnp.maximum(1 - low - ratio, 0))


def damage(reward: Rows, right: Float[Array, "B"], group: Int[Array, "B"]) -> Rows:
    """Δ = (g n_w + f n_r) / N of a group: the advantage that its right rows lose by false rewards.

    Args:
      reward: of 0 and 1, as it was paid.
      right: 1 for right rows and 0 for wrong ones: n_r and n_w of N.
      group: id of the group of each row.
    """
    rights, wrongs = _numbers(right, group)
    unpaid = group_count(group, (right > 0.5) & (reward < 0.5)).astype(right.dtype)
    falsely = group_count(group, (right < 0.5) & (reward > 0.5)).astype(right.dtype)
    return (unpaid * wrongs + falsely * rights) / (rights + wrongs)


def expected_damage(right: Float[Array, "B"], group: Int[Array, "B"]) -> tuple[Rows, Rows]:
    """Mean and variance of Δ where each row is paid with a chance of ½: n_r n_w / N and a quarter.

    Small where almost all rows are right, or almost none.
    """
    rights, wrongs = _numbers(right, group)
    mean = rights * wrongs / (rights + wrongs)
    return mean, mean / 4


def _numbers(right, group):
    kind = right.dtype
    return (group_count(group, where).astype(kind) for where in (right > 0.5, right < 0.5))
