"""RiskPO: optimizes a mixture of values at risk of the scores of bundled prompts.

"RiskPO: Risk-based Policy Optimization via Verifiable Reward for LLM Post-Training",
https://github.com/RTkenny/RiskPO

    x    = Σ of the j-th rewards of the K prompts of a bundle
    g    = [(x - q_d)⁺ - (x - q_u)⁺ + q_d - q_u] / (α_u - α_d),  h = -(q_d - x)⁺ / α_d
    A    = (w h + g) / (w + 1) / std(x), divided by the std of the prompt's rewards
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The constants are those of the authors' MATH script. Their DAPO-math script uses α_u = 0.8 and
`relative_credit` without the natural baseline q_d - q_u. The risk-seeking script uses α_u = 0.8 and
`upper_tail`. Quantiles are tracked from update to update. With `own_fraction` 1 they are those of
the bundle (the authors' mode "batch"), with ½ the mean of both ("mix"). If the scores of a bundle
are equal, the authors divide by 1e-6; here a std below 1e-3 counts as 1. The clip is that of DAPO.

Reports: Qwen2.5-1.5B and others: above GRPO in pass@1 and pass@k on maths, code and multimodal
tasks (no numbers).
Traps: With the default natural baseline, every advantage is at most 0. Bundles follow the order of
the batch. `relative_credit` leaves [-1, 1] with dense rewards.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives import group_count, group_deviation, group_has_tokens, group_std, group_sum
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.group_order import group_index, group_quantile, group_rank
from rlvr_jax.objectives.statistics.masked import masked_mean, masked_quantile
from rlvr_jax.types import LOSS_ON_BRACKETS, Method, Recipe, Rollouts, part, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegative,
    OpenUnit,
    Positive,
    Unit,
)
from rlvr_jax.types.passing import arguments_of

TRACKED_LEVELS = tuple(level / 20 for level in range(1, 20))
"""Levels of the tracked quantiles."""

Scores = Float[Array, "B"]
Pair = Sequence[Float[Array, ""] | float]
Tail = Callable[[Scores, Pair, Pair, float], Scores]
"""(score, quantiles at α_low and α_high, these levels, ε) -> value of each score."""
Ids = Int[Array, "B"]
Credit = Callable[[Scores, Scores, Ids, Ids, float], Scores]
"""(value of the score that each rollout enters, reward, group, unit of `Bundles`, ε) -> advantage
of each rollout."""


class Bundles(NamedTuple):
    """The scores of a batch, each repeated at every rollout that it sums.

    Fields:
      bundle: bundle of the rollout's prompt.
      unit: id of the score to which the rollout belongs.
      score: sum of the rewards of the unit.
      counted: one rollout of each unit: statistics of scores run over these.
    """

    bundle: Int[Array, "B"]
    unit: Int[Array, "B"]
    score: Float[Array, "B"]
    counted: Bool[Array, "B"]


class TrackedQuantiles(NamedTuple):
    """Quantiles of the scores at `TRACKED_LEVELS`, and whether a batch has set them."""

    quantiles: Float[Array, "19"]
    seen: Bool[Array, ""]


def lower_tail(score: Scores, quantiles: Pair, levels: Pair, epsilon: float) -> Scores:
    """-(q_low - x)⁺ / (α_low + ε): depth of a score in the lower tail.

    Args:
      score, quantiles, levels, epsilon: arguments of a `Tail`.
    """
    return -jnp.maximum(quantiles[0] - score, 0) / (levels[0] + epsilon)


def upper_tail(score: Scores, quantiles: Pair, levels: Pair, epsilon: float) -> Scores:
    """(x - q_high)⁺ / (1 - α_high + ε): height of a score in the upper tail.

    Args:
      score, quantiles, levels, epsilon: arguments of a `Tail`.
    """
    return jnp.maximum(score - quantiles[1], 0) / (1 - levels[1] + epsilon)


def uniform_credit(value: Scores, reward: Scores, group: Ids, unit: Ids, epsilon: float) -> Scores:
    """The value of the score, for each of its rollouts.

    Args:
      value, reward, group, unit, epsilon: arguments of a `Credit`; only the value is used.
    """
    return value


def spread_credit(value: Scores, reward: Scores, group: Ids, unit: Ids, epsilon: float) -> Scores:
    """value / (std of the prompt's rewards + ε); a std of 1e-3 or less is replaced by 1.

    Args:
      value, reward, group, unit, epsilon: arguments of a `Credit`; the unit is not used.
    """
    std = group_std(reward, group)
    return value / (jnp.where(std <= 1e-3, 1, std) + epsilon)


def outcome_credit(value: Scores, reward: Scores, group: Ids, unit: Ids, epsilon: float) -> Scores:
    """Half the value for rewards above 0, one and a half for the others.

    Args:
      value, reward, group, unit, epsilon: arguments of a `Credit`; value and reward are used.
    """
    return jnp.where(reward > 0, 0.5, 1.5).astype(value.dtype) * value


def relative_credit(value: Scores, reward: Scores, group: Ids, unit: Ids, epsilon: float) -> Scores:
    """The fraction of R - mean in its sum over the unit; equal parts if that sum is ≤ ε.

    Args:
      value, reward, group, unit, epsilon: arguments of a `Credit`.
    """
    lead = group_deviation(reward, group)
    total = group_sum(lead, unit)
    even = 1 / group_count(unit).astype(value.dtype)
    tiny = jnp.abs(total) <= epsilon
    return value * jnp.where(tiny, even, lead / jnp.where(tiny, 1, total))


@part(writes={"advantage"})
def risk_sensitive(
    num_prompts: Count = 5,
    low: OpenUnit = 0.2,
    high: OpenUnit = 0.9,
    tail_weight: NonNegative = 1.5,
    tail: Tail = lower_tail,
    natural_baseline: bool = True,
    credit: Credit = uniform_credit,
    track_rate: NonNegative = 0.1,
    epsilon: Positive = 1e-6,
    max_value: Bound = 1e3,
    min_spread: NonNegative = 1e-3,
    own_fraction: Unit = 0.0,
) -> Transform:
    """Distributes the mixed value at risk of the scores of bundles to their rollouts.

    With x a score and q the quantiles at α_low and α_high:
        range = [(x - q_low)⁺ - (x - q_high)⁺ + q_low - q_high] / (α_high - α_low + ε) A = (w tail +
        range) / (w + 1) / (std of the bundle's scores + ε)
    In the first update q are those of the bundle; later s times those plus 1 - s times the tracked
    ones nearest to the two levels. Tracking: q ← q + η (α - mean 1[x < q]), from the quantiles of
    the first batch. Relative to tracked quantiles a bundle of equal scores has a value as well.

    Args:
      num_prompts: prompts per bundle (K).
      low, high: levels of the quantiles, ascending (α_d, α_u).
      tail_weight: weight of the tail (w).
      tail: `lower_tail` (risk-averse) or `upper_tail` (risk-seeking).
      natural_baseline: whether q_low - q_high is part of the range term, which is then ≤ 0.
      credit: how the value of a score is distributed: `spread_credit`, `uniform_credit`,
        `outcome_credit` or `relative_credit`.
      track_rate: step of the tracked quantiles (η).
      epsilon: added to denominators (ε).
      max_value: bound of |A| before it is distributed (ours).
      min_spread: standard deviations of scores below it count as 1 (ours); with 0 equal scores are
        divided by ε.
      own_fraction: weight of the bundle's own quantiles (s); the tracked ones have the rest.
    Raises:
      ValueError: levels that do not ascend.
    """
    if not low < high:
        raise ValueError(
            f"risk_sensitive: low and high must ascend in (0, 1), got {low} and {high}"
        )
    nearest = [
        min(range(len(TRACKED_LEVELS)), key=lambda i: abs(TRACKED_LEVELS[i] - level))
        for level in (low, high)
    ]

    def init(spec):
        return TrackedQuantiles(jnp.zeros(len(TRACKED_LEVELS), float), jnp.zeros((), bool))

    def apply(signals, context, state):
        rollouts = context.rollouts
        bundles = bundled(rollouts, num_prompts)
        score, tracked = bundles.score, state.quantiles.astype(bundles.score.dtype)
        own = (group_quantile(score, bundles.bundle, a, bundles.counted) for a in (low, high))
        fraction = jnp.where(state.seen, own_fraction, 1).astype(score.dtype)
        pair = [
            (1 - fraction) * tracked[i] + fraction * q for i, q in zip(nearest, own, strict=True)
        ]
        middle = jnp.maximum(score - pair[0], 0) - jnp.maximum(score - pair[1], 0)
        if natural_baseline:
            middle = middle + pair[0] - pair[1]
        middle = middle / (high - low + epsilon)
        outer = tail(score, pair, (low, high), epsilon)
        value = (tail_weight * outer + middle) / (tail_weight + 1)
        spread = group_std(score, bundles.bundle, where=bundles.counted)
        spread = jnp.where(spread < min_spread, 1, spread)
        value = jnp.clip(value / (spread + epsilon), -max_value, max_value)
        shared = credit(value, rollouts.reward, rollouts.group, bundles.unit, epsilon)
        signals = replace(signals, advantage=jnp.where(signals.mask, shared[:, None], 0))
        return signals, _track(state, bundles, track_rate), {}

    return Transform(apply, init=init)


def bundled(rollouts: Rollouts, num_prompts: int) -> Bundles:
    """Bundles of `num_prompts` prompts and their scores; the last bundle may be smaller.

    Rows of groups without tokens are a separate bundle, which does not count.
    """
    asked = group_has_tokens(rollouts.mask, rollouts.group)
    prompt, rows = group_index(rollouts.group, asked), rollouts.group.shape[0]
    bundle = jnp.where(asked, prompt // num_prompts, rows)
    place = group_rank(rollouts.rollout_id, rollouts.group, rollouts.rollout_id)
    unit = bundle * rows + place
    score = group_sum(rollouts.reward, unit)
    counted = asked & (group_rank(prompt, unit, rollouts.rollout_id) == 0)
    return Bundles(bundle, unit, score, counted)


def _track(state, bundles, rate):
    score, counted = bundles.score, bundles.counted
    levels = jnp.asarray(TRACKED_LEVELS, score.dtype)
    tracked = state.quantiles.astype(score.dtype)
    # `map` compiles one search, not one for each level.
    first = jax.lax.map(lambda level: masked_quantile(score, counted, level), levels)
    below = jax.vmap(lambda quantile: masked_mean(score < quantile, counted))(tracked)
    moved = tracked + rate * (levels - below.astype(score.dtype))
    quantiles = jnp.where(state.seen, moved, first).astype(state.quantiles.dtype)
    return TrackedQuantiles(quantiles, jnp.ones((), bool))


@arguments_of(risk_sensitive, credit=spread_credit)
def riskpo(
    clip_low: ClipLow = 0.2, clip_high: ClipHigh = 0.28, epsilon: Epsilon = 1e-6, **risk: Any
) -> Recipe:
    """Computes advantages by the quantiles of bundled scores, with a clipped ratio."""
    advantage = risk_sensitive(epsilon=epsilon, **risk)
    return Recipe(objective=clipped_objective(clip_low, clip_high, advantage=advantage))


METHOD = Method(riskpo, changes="advantage", shown=LOSS_ON_BRACKETS)
