"""CANON: splits each group by entropy or length, and compares the halves with each other.

"CANON: Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
https://github.com/biuboomc/CANON

    high: A = μ (R - α m_low + β) + (1 - μ) (R - m_high)
    low:  A = μ (α R - m_high - β) + (1 - μ) (R - m_low)
    loss = mean_i Σ_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / L

The halves are those of the mean token entropy at sampling time, m their mean rewards. μ, α and β
are `inter_fraction`, `tilt` and `bonus`. With the defaults α = 1 and β = 0, only the reward decides
which half is better. With the length as property (`condition=num_tokens, favors_high=False`), α
below 1 favors short responses. A group of one has advantage 0; in the authors' code, its advantage
is its reward. Rollouts without tokens are in no half.

Reports: three models in maths and logic: by entropy above Dr. GRPO; by length with α below 1, more
accuracy per token (abstract, no numbers).
Traps: With α ≠ 1 or β ≠ 0, groups of equal rewards also train. Responses of equal length are split
by their order. `max_length` must be the run's budget, because it divides all advantages.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives import batch_mean, group_count, group_has_tokens, group_mean, has_tokens
from rlvr_jax.objectives.advantages.group_relative import group_of_one_remark
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.types import (
    LOSS_ON_BRACKETS,
    Ids,
    Method,
    Recipe,
    Rollouts,
    RowMask,
    Rows,
    arguments_of,
    part,
    replace,
)
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite, MaxLength, Positive

Property = Callable[[Rollouts], Array]
InterShare = Callable[[Rollouts, Array], Array]
"""(rollouts, number of batches so far) -> μ."""


def mean_sampling_entropy(rollouts: Rollouts) -> Float[Array, "B"]:
    """Mean entropy of the sampling policy over the tokens of the rollout, nats; 0 without any."""
    return masked_mean(rollouts.entropy, rollouts.mask, axis=1)


def num_tokens(rollouts: Rollouts) -> Float[Array, "B"]:
    """Response tokens on the mask."""
    return masked_count(rollouts.mask, axis=1).astype(rollouts.reward.dtype)


def inter_fraction_of_success(rollouts: Rollouts, batch: Int[Array, ""]) -> Float[Array, ""]:
    """μ = mean reward of the batch: the better the policy, the more the halves compete."""
    counted = group_has_tokens(rollouts.mask, rollouts.group)
    return batch_mean(rollouts.reward, rollouts.group, counted)[0]


def restarting_inter_fraction(rollouts: Rollouts, batch: Int[Array, ""]) -> Float[Array, ""]:
    """μ = 1 - 0.6 (s + 1) / 30 for batches s < 30, then 1 - 0.6 (1 + cos(π j / 40)) / 2.

    j = (s - 30) mod 40: each cycle starts at 0.4 and rises towards 1. Constants are the authors'.
    """
    rising = 0.6 * (batch + 1).astype(float) / 30
    phase = ((batch - 30) % 40).astype(float) / 40
    falling = 0.6 * (1 + jnp.cos(jnp.pi * phase)) / 2
    return 1 - jnp.where(batch < 30, rising, falling).astype(rollouts.reward.dtype)


@part(writes={"advantage"})
def conditional_advantage(
    condition: Property = mean_sampling_entropy,
    inter_fraction: float | InterShare = 1.0,
    tilt: Finite = 1.0,
    bonus: Finite = 0.0,
    favors_high: bool = True,
    divisor: Positive = 1.0,
) -> Transform:
    """`conditional_advantages` on a property of the rollouts, over a constant.

    A rollout without tokens has no property: it is in no half, and its reward in no mean.

    A schedule of `inter_fraction` counts batches with tokens.

    Args:
      condition: property of the rollouts by which groups are split: `mean_sampling_entropy`,
        `num_tokens` or a function rollouts -> [B].
      inter_fraction: weight of the comparison with the other half (μ, in [0, 1]), or its schedule:
        `inter_fraction_of_success`, `restarting_inter_fraction` or (rollouts, batch) -> μ.
      tilt: scale of the rival's mean and of the disfavored half's rewards (α).
      bonus: added in the high half, subtracted in the low one (β).
      favors_high: the half that α below 1 favors is the high one.
      divisor: constant over which the advantage is taken (L).
    Metrics: inter_fraction (weight of the comparison with the other half).
    Raises:
      ValueError: a constant inter_fraction outside [0, 1].
    """
    scheduled = callable(inter_fraction)
    if not scheduled and not 0 <= inter_fraction <= 1:
        raise ValueError(
            f"conditional_advantage: inter_fraction must be in [0, 1], got {inter_fraction}"
        )

    def init(spec):
        return jnp.zeros((), jnp.int32) if scheduled else ()

    def apply(signals, context, state):
        rollouts = context.rollouts
        reward, group = rollouts.reward, rollouts.group
        weight = inter_fraction(rollouts, state) if scheduled else inter_fraction
        where = has_tokens(rollouts.mask)
        high = in_high_half(condition(rollouts), group, rollouts.rollout_id, where)
        halves = {"tilt": tilt, "bonus": bonus, "favors_high": favors_high}
        own = conditional_advantages(reward, group, high, where, weight, **halves)
        signals = replace(signals, advantage=jnp.where(signals.mask, own[:, None] / divisor, 0))
        metrics = {"inter_fraction": jnp.asarray(weight, reward.dtype)}
        if scheduled:
            state = state + jnp.any(signals.mask).astype(jnp.int32)
        return signals, state, metrics

    reads = frozenset({"sampled_entropy"} if condition is mean_sampling_entropy else ())
    return Transform(apply, init=init, reads=reads, remark=group_of_one_remark)


def in_high_half(values: Rows, group: Ids, rollout_id: Ids, where: RowMask) -> RowMask:
    """Whether a rollout is not among the ⌊n/2⌋ of its group with the smallest values.

    Args:
      values: the property.
      group: group of each row, int [B].
      rollout_id: the smaller one has the smaller of equal values.
      where: the rows that are compared; the result for the others has no meaning.
    """
    last = jnp.where(where, values, jnp.inf)  # those that are not compared
    return group_rank(last, group, rollout_id) >= group_count(group, where) // 2


def conditional_advantages(
    reward: Float[Array, "B"],
    group: Int[Array, "B"],
    high: Bool[Array, "B"],
    where: Bool[Array, "B"],
    inter_fraction: float | Float[Array, ""],
    *,
    tilt: float = 1.0,
    bonus: float = 0.0,
    favors_high: bool = True,
) -> Float[Array, "B"]:
    """μ · inter + (1 - μ) · intra, the comparisons with the other half and with the own.

    With m the mean rewards of the halves, intra = R - m_own. In the favored half, inter is R - α
    m_other, in the other half α R - m_other. β is added in the high half, subtracted in the low
    one. With α = 1 and β = 0 only the reward decides: equal rewards then give 0, as a group of one
    always has. With μ = ½ and an even group that is R minus the mean of the group.

    Args:
      reward: R of each row.
      group: number of the prompt of each row.
      high: whether a rollout is in the high half of its group.
      where: the rows that are compared.
      inter_fraction: weight of the comparison with the other half, in [0, 1] (μ).
      tilt: factor of the reward or mean of the half that is not favored (α).
      bonus: added in the high half and subtracted in the low half (β).
      favors_high: True: the high half is the favored one.
    """
    mean_low = group_mean(reward, group, where & ~high)
    mean_high = group_mean(reward, group, where & high)
    own, other = jnp.where(high, mean_high, mean_low), jnp.where(high, mean_low, mean_high)
    favored = high == favors_high
    inter = jnp.where(favored, reward - tilt * other, tilt * reward - other)
    inter = inter + jnp.where(high, bonus, -bonus).astype(reward.dtype)
    mixed = inter_fraction * inter + (1 - inter_fraction) * (reward - own)
    return jnp.where(group_count(group, where) > 1, mixed, 0)


@arguments_of(conditional_advantage, "condition", "inter_fraction", "tilt", "bonus", "favors_high")
def canon(
    max_length: MaxLength = 8192, clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.28, **halves: Any
) -> Recipe:
    """Compares rewards with the other half of the group, with a clipped ratio on token sums."""
    advantage = conditional_advantage(divisor=max_length, **halves)
    objective = clipped_objective(
        clip_low, clip_high, advantage=advantage, aggregation=rollout_mean_token_sum()
    )
    return Recipe(objective)


METHOD = Method(canon, changes="advantage, aggregation", shown=LOSS_ON_BRACKETS)
