"""Rewards that want as much hesitation as a prompt is hard.

Prompts are easy, medium or hard by the share of right rollouts: at least 2/3, at least 1/3, less.
How often the rollouts of a kind hesitate on average is the target of that kind. Right answers to
easy prompts lose by exceeding it, to medium ones by leaving it, and to hard ones by staying below;
wrong answers gain by exceeding it.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.arguments import check_at_least, check_positive
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.statistics.group_order import group_rank
from rlvr_jax.objectives.statistics.groups import group_deviation, group_mean, group_std, has_tokens
from rlvr_jax.objectives.statistics.masked import masked_mean
from rlvr_jax.objectives.statistics.window_entropy import batch_threshold, hesitation
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Count, Positive, Range
from rlvr_jax.types.parts import part

__all__ = [
    "EASY",
    "HARD",
    "MEDIUM",
    "HesitationScale",
    "ThresholdState",
    "difficulty_level",
    "hesitation_advantage",
    "hesitation_score",
    "hesitation_target",
]

EASY, MEDIUM, HARD = 0, 1, 2
WRONG_FACTORS = (0.6, 0.8, 1.0)  # of the score of wrong rollouts, by difficulty
Level = tuple[float, float, float]


@dataclass(frozen=True)
class HesitationScale:
    """The form of the score; what has three entries is given for easy, medium and hard prompts.

    Fields:
      size: α, the largest score of an easy prompt.
      margin: f, share of the target that is free.
      bend: κ, where the penalty turns from square to linear, in counts.
      temperature: T of the sigmoids, in counts.
      cap: factor of α.
    Raises:
      ValueError: not three entries, a size, bend or temperature that is not positive, or a negative
        margin or cap.
    """

    size: float = 0.5
    margin: Level = (0.15, 0.25, 0.35)
    bend: Level = (2.0, 3.0, 4.0)
    temperature: Level = (2.0, 2.5, 3.0)
    cap: Level = (1.0, 1.0, 1.2)

    def __post_init__(self) -> None:
        check_positive("HesitationScale", size=self.size)
        for name in ("margin", "bend", "temperature", "cap"):
            entries = getattr(self, name)
            if len(entries) != 3:
                raise ValueError(f"HesitationScale: {name} must have three entries, got {entries}")
            numbers = {f"{name}[{number}]": entry for number, entry in enumerate(entries)}
            if name in ("bend", "temperature"):
                check_positive("HesitationScale", **numbers)
            else:
                check_at_least(0, "HesitationScale", **numbers)


def difficulty_level(outcome: Float[Array, "B"], group: Int[Array, "B"]) -> Int[Array, "B"]:
    """EASY, MEDIUM or HARD: right in at least 2/3, at least 1/3, or less of the group."""
    accuracy = group_mean(outcome, group)
    return jnp.where(accuracy >= 2 / 3, EASY, jnp.where(accuracy >= 1 / 3, MEDIUM, HARD))


def hesitation_target(
    count: Int[Array, "B"],
    level: Int[Array, "B"],
    group: Int[Array, "B"],
    rollout_id: Int[Array, "B"],
    where: Bool[Array, "B"],
    dtype: DTypeLike = float,
) -> Float[Array, "B"]:
    """n*: mean over the prompts of a row's difficulty of their mean count, rounded, halves to even.

    Args:
      count: of each rollout.
      level: difficulty, equal within a group.
      group: id of the group of each rollout.
      rollout_id: distinct within a group.
      where: the rollouts that count.
    """
    mean = group_mean(count.astype(dtype), group, where)
    # One row stands for each prompt: a sum over all of them would round differently.
    place = group_rank(jnp.where(where, rollout_id, jnp.iinfo(jnp.int32).max), group, rollout_id)
    one = where & (place == 0)
    of_level = jnp.stack(
        [masked_mean(mean, one & (level == kind)) for kind in (EASY, MEDIUM, HARD)]
    )
    return jnp.round(of_level)[level]


def hesitation_score(
    count: Int[Array, "..."],
    target: Float[Array, "..."],
    level: Int[Array, "..."],
    right: Bool[Array, "..."],
    scale: HesitationScale,
) -> Float[Array, "..."]:
    """s(n, n*): what hesitation adds to the reward.

    δ = n - n*, m = max(1, f max(n*, 1)), c = α · cap, σ_T(x) = 1 / (1 + e^(-x/T)), and h(x) is
    x² / 2κ up to κ and x - κ/2 beyond:

        easy, right      -min(c, c h((δ - m)⁺) / (m + κ))
        medium, right    -min(c, c h((|δ| - m)⁺) / (m + κ))
        hard, right      c σ_T(δ + m) if δ ≥ -m, else -min(c, ½ c h(-δ - m) / (m + κ))
        wrong            c σ_T((δ - m)⁺) · 0.6, 0.8 or 1

    σ_T(0) = ½: every wrong rollout earns at least half of its share.

    Args:
      count, target: n, n*.
      level: EASY, MEDIUM or HARD.
      right: whether the answer is.
      scale: the constants.
    Source: https://github.com/shawn0728/ARES.
    """
    dtype = target.dtype

    def of_level(entries):
        return jnp.asarray(entries, dtype)[level]

    share, bend, temperature = (of_level(x) for x in (scale.margin, scale.bend, scale.temperature))
    most = scale.size * of_level(scale.cap)
    excess = count.astype(dtype) - target
    margin = jnp.maximum(1, share * jnp.maximum(target, 1))

    def bent(x):
        x = jnp.maximum(x, 0)
        return jnp.where(x <= bend, x**2 / (2 * bend), x - bend / 2) / (margin + bend)

    def gain(x):
        return most * jax.nn.sigmoid(x / temperature)

    easy = -jnp.minimum(most, bent(excess - margin) * most)
    medium = -jnp.minimum(most, bent(jnp.abs(excess) - margin) * most)
    short = -jnp.minimum(most, bent(-excess - margin) * most / 2)
    hard = jnp.where(excess >= -margin, gain(excess + margin), short)
    earned = jnp.where(level == EASY, easy, jnp.where(level == MEDIUM, medium, hard))
    wrong = gain(jnp.maximum(excess - margin, 0)) * of_level(WRONG_FACTORS)
    return jnp.where(right, earned, wrong)


class ThresholdState(NamedTuple):
    """Running mean of the threshold of the window entropy (nats), and whether there is one."""

    threshold: Float[Array, ""]
    is_set: Bool[Array, ""]

    def moved(self, measured: Float[Array, ""], keep: float) -> "ThresholdState":
        """The state after a batch: the first threshold as it is, then keep · old + rest · new."""
        measured = measured.astype(self.threshold.dtype)
        mean = keep * self.threshold + (1 - keep) * measured
        return ThresholdState(jnp.where(self.is_set, mean, measured), jnp.ones((), bool))


@part(writes={"advantage"})
def hesitation_advantage(
    window: Count = 4,
    percentile: Annotated[float, Range(0, 100)] = 95.0,
    keep: Annotated[float, Range(0, 1, open_high=True)] = 0.99,
    scale: HesitationScale | None = None,
    epsilon: Positive = 1e-6,
) -> Transform:
    """Group-normalized advantages of reward plus `hesitation_score`.

    The threshold is the running mean over earlier batches, that of the batch itself at the first.

    Args:
      window, percentile: of `batch_threshold`.
      keep: share of the old running mean, in [0, 1).
      scale: of the score; None for the defaults.
      epsilon: added to the standard deviation of a group's rewards.
    Reads: reward, outcome, group, trigger, entropy of the rollouts. Writes: advantage.
    Metrics: hesitation_threshold (nats), hesitation_count and hesitation_score (means over the
      rollouts with tokens).
    Raises:
      ValueError: window not positive, or percentile, keep or epsilon out of range.
    """
    scale = HesitationScale() if scale is None else scale

    def init(spec):
        del spec
        return ThresholdState(jnp.zeros((), float), jnp.zeros((), bool))

    def apply(signals, context, state):
        rollouts, group = context.rollouts, context.rollouts.group
        entropy, dtype = rollouts.entropy, rollouts.reward.dtype
        measured = batch_threshold(entropy, rollouts, window, percentile)
        threshold = jnp.where(state.is_set, state.threshold.astype(dtype), measured)
        count, _ = hesitation(entropy, rollouts, threshold, window)
        level = difficulty_level(rollouts.outcome, group)
        written = has_tokens(rollouts.mask)
        target = hesitation_target(count, level, group, rollouts.rollout_id, written, dtype)
        right = outcome_is_right(rollouts.outcome)
        score = hesitation_score(count, target, level, right, scale)
        reward = rollouts.reward + score
        centered = group_deviation(reward, group)
        advantage = (centered / (group_std(reward, group) + epsilon))[:, None]
        any_token = jnp.any(signals.mask)
        state = jax.tree.map(
            lambda new, old: jnp.where(any_token, new, old), state.moved(measured, keep), state
        )
        metrics = {
            "hesitation_threshold": threshold,
            "hesitation_count": masked_mean(count, written).astype(dtype),
            "hesitation_score": masked_mean(score, written),
        }
        signals = replace(signals, advantage=jnp.where(signals.mask, advantage, 0))
        return signals, state, metrics

    return Transform(apply, init=init, reads={"trigger", "sampled_entropy"})
