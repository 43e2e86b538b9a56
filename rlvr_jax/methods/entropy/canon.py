"""CANON: split each group by entropy or length, and let the halves compete.

"CANON: Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
https://github.com/biuboomc/CANON

    high: A = μ (R - α m_low + β) + (1 - μ) (R - m_high)
    low:  A = μ (α R - m_high - β) + (1 - μ) (R - m_low)
    loss = mean_i Σ_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / L

The halves are those of the mean token entropy at sampling time, m their mean rewards; with α = 1
and β = 0, the defaults, the reward alone decides which one is better. For the length give
`condition=num_tokens, favors_high=False`: α below 1 then favors short answers. μ may follow a
schedule: `inter_share_of_success`, `restarting_inter_share`. A group of one has advantage 0; the
authors give it its reward. Rollouts without tokens (those that are cut, where these are masked) are
in no half.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import group_of_one_remark
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.groups import (
    batch_mean,
    group_count,
    group_has_tokens,
    group_mean,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.objectives.surrogates.aggregations import rollout_mean_token_sum
from rlvr_jax.types import Method, Recipe, replace
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Finite, Positive
from rlvr_jax.types.parts import part
from rlvr_jax.types.rollouts import Rollouts

Property = Callable[[Rollouts], Array]


# (rollouts, number of batches so far) -> μ.
InterShare = Callable[[Rollouts, Array], Array]


def mean_sampling_entropy(rollouts: Rollouts) -> Float[Array, "B"]:
    """Mean entropy of the sampling policy over the tokens of the rollout, nats; 0 without any."""
    return masked_mean(rollouts.entropy, rollouts.mask, axis=1)


def num_tokens(rollouts: Rollouts) -> Float[Array, "B"]:
    """Response tokens on the mask."""
    return masked_count(rollouts.mask, axis=1).astype(rollouts.reward.dtype)


def in_high_half(
    values: Float[Array, "B"],
    group: Int[Array, "B"],
    rollout_id: Int[Array, "B"],
    where: Bool[Array, "B"] | None = None,
) -> Bool[Array, "B"]:
    """Whether a rollout is not among the ⌊n/2⌋ of its group with the smallest values.

    Args:
      values: the property.
      group: id of the group of each rollout.
      rollout_id: the smaller one has the smaller of equal values.
      where: the rows that are compared; of the others nothing is said.
    """
    if where is not None:
        values = jnp.where(where, values, jnp.inf)  # behind those that count
    return group_rank(values, group, rollout_id) >= group_count(group, where) // 2


def conditional_advantages(
    reward: Float[Array, "B"],
    group: Int[Array, "B"],
    high: Bool[Array, "B"],
    inter_share: float | Float[Array, ""] = 1.0,
    tilt: float = 1.0,
    bonus: float = 0.0,
    favors_high: bool = True,
    where: Bool[Array, "B"] | None = None,
) -> Float[Array, "B"]:
    """μ · inter + (1 - μ) · intra, the comparisons with the other half and with the own.

    With m the mean rewards of the halves, intra = R - m_own. In the favored half inter is
    R - α m_other, in the other one α R - m_other; β is added in the high half and taken away in
    the low one. With α = 1 and β = 0 the reward alone decides: equal rewards then give 0, as a
    group of one always has. With μ = ½ and an even group that is R minus the mean of the group.

    Args:
      reward, group: of the rollouts.
      high: the half they are in.
      inter_share: μ, in [0, 1].
      tilt: α; below 1 it favors one half.
      bonus: β.
      favors_high: the half that α below 1 favors is the high one.
      where: the rows that are compared.
    """
    counted = jnp.ones_like(high) if where is None else where
    mean_low = group_mean(reward, group, counted & ~high)
    mean_high = group_mean(reward, group, counted & high)
    own, other = jnp.where(high, mean_high, mean_low), jnp.where(high, mean_low, mean_high)
    favored = high == favors_high
    inter = jnp.where(favored, reward - tilt * other, tilt * reward - other)
    inter = inter + jnp.where(high, bonus, -bonus).astype(reward.dtype)
    mixed = inter_share * inter + (1 - inter_share) * (reward - own)
    return jnp.where(group_count(group, counted) > 1, mixed, 0)


def warmup_cosine_restarts(
    batch: Int[Array, "..."], peak: float = 0.6, warmup: int = 30, period: int = 40
) -> Float[Array, "..."]:
    """peak (s + 1) / warmup for s < warmup, then peak (1 + cos(π j / period)) / 2.

    j = (s - warmup) mod period: each cycle starts at the peak and falls towards 0.

    Args:
      batch: s, from 0.
      peak, warmup, period: the authors' values.
    """
    rising = peak * (batch + 1).astype(float) / warmup
    phase = ((batch - warmup) % period).astype(float) / period
    falling = peak * (1 + jnp.cos(jnp.pi * phase)) / 2
    return jnp.where(batch < warmup, rising, falling)


def inter_share_of_success(rollouts: Rollouts, batch: Int[Array, ""]) -> Float[Array, ""]:
    """μ = mean reward of the batch: the better the policy, the more the halves compete."""
    del batch
    counted = group_has_tokens(rollouts.mask, rollouts.group)
    return batch_mean(rollouts.reward, rollouts.group, counted)[0]


def restarting_inter_share(rollouts: Rollouts, batch: Int[Array, ""]) -> Float[Array, ""]:
    """μ = 1 - `warmup_cosine_restarts`."""
    return 1 - warmup_cosine_restarts(batch).astype(rollouts.reward.dtype)


@part(writes={"advantage"})
def conditional_advantage(
    condition: Property = mean_sampling_entropy,
    inter_share: float | InterShare = 1.0,
    tilt: Finite = 1.0,
    bonus: Finite = 0.0,
    favors_high: bool = True,
    divisor: Positive = 1.0,
) -> Transform:
    """`conditional_advantages` on a property of the rollouts, over a constant.

    A rollout without tokens has no property: it is in no half, and its reward in no mean.

    Args:
      condition: rollouts -> [B], the property by which groups are split.
      inter_share: μ, or a function (rollouts, batch) -> μ, for which batches with tokens are
        counted.
      tilt, bonus, favors_high: α, β and the half that α favors.
      divisor: constant of the run by which advantages are divided.
    Metrics: inter_share.
    Raises:
      ValueError: a constant inter_share outside [0, 1], a divisor that is not positive, or a tilt
        or bonus that is not finite.
    """
    scheduled = callable(inter_share)
    if not scheduled and not 0 <= inter_share <= 1:
        raise ValueError(f"conditional_advantage: inter_share must be in [0, 1], got {inter_share}")

    def init(spec):
        del spec
        return jnp.zeros((), jnp.int32) if scheduled else ()

    def apply(signals, context, state):
        rollouts = context.rollouts
        reward, group = rollouts.reward, rollouts.group
        share = inter_share(rollouts, state) if scheduled else inter_share
        written = has_tokens(rollouts.mask)
        high = in_high_half(condition(rollouts), group, rollouts.rollout_id, written)
        own = conditional_advantages(reward, group, high, share, tilt, bonus, favors_high, written)
        signals = replace(signals, advantage=jnp.where(signals.mask, own[:, None] / divisor, 0))
        metrics = {"inter_share": jnp.asarray(share, reward.dtype)}
        if scheduled:
            state = state + jnp.any(signals.mask).astype(jnp.int32)
        return signals, state, metrics

    reads = frozenset({"sampled_entropy"} if condition is mean_sampling_entropy else ())
    return Transform(apply, init=init, reads=reads, remark=group_of_one_remark)


def canon(
    condition: Property = mean_sampling_entropy,
    inter_share: float | InterShare = 1.0,
    tilt: float = 1.0,
    bonus: float = 0.0,
    favors_high: bool = True,
    max_length: float = 8192,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
) -> Recipe:
    """Rewards relative to the other half of the group, with a clipped ratio on token sums.

    Args:
      condition: property of the rollouts by which groups are split.
      inter_share: weight of the comparison with the other half (μ), or its schedule.
      tilt: scale of the rival's mean and of the disfavored half's rewards (α).
      bonus: added in the high half, taken away in the low one (β).
      favors_high: the half that α below 1 favors is the high one.
      max_length: budget of response tokens (L).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=conditional_advantage(
                condition, inter_share, tilt, bonus, favors_high, divisor=max_length
            ),
            aggregation=rollout_mean_token_sum(),
        )
    )


METHOD = Method(
    canon,
    "CANON: Conditional Advantage Estimation for Reinforcement Learning in Large Reasoning Models",
    "https://github.com/biuboomc/CANON",
    changes="advantage, aggregation",
    reports=(
        "three models in maths and logic: by entropy above Dr. GRPO; by length with α below 1, "
        "more accuracy per token (abstract)"
    ),
    traps=(
        "with α not 1 or β not 0 groups of equal rewards train too; answers of equal length are "
        "split by their order; give max_length the run's budget, for it divides all advantages"
    ),
)
