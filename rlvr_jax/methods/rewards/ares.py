"""ARES: rewards trigger words (wait, however) on hard prompts and penalizes them on easy ones.

"ARES: Multimodal Adaptive Reasoning via Difficulty-Aware Token-Level Entropy Shaping",
https://github.com/shawn0728/ARES

    W_t  = mean entropy of the w tokens after t
    n_i  = trigger words with W_t ≥ threshold (running mean of the batches' thresholds)
    R_i  = outcome + s(n_i, n*, difficulty of the prompt, correctness)
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ PPO clip with dual clip / Σ n_i

s is `hesitation_score`, n* the mean count at that difficulty. The threshold of a response is the
95th percentile of its W. The threshold of a batch is the median over its responses.

Deviations:

- The authors take the entropy of the ten likeliest tokens and a tail. Here it is the full entropy.
- The list of words is ours. Positions count where a word was the likeliest token, whichever token
was sampled, as in the authors' code.
- Their α adapts to the rounding error of the target, a slow random walk. Here it is constant.

Left out: the KL whose weight adapts to the difficulty.
Reports: Qwen2.5-VL-7B: above open models of 7B in maths, logic and on pictures, with shorter easy
answers and longer hard ones (abstract, no numbers).
Traps: An incorrect response earns 0.15 to 0.3, at least half of its maximum. Incorrect responses to
hard prompts differ only by their counts, and groups of equal outcomes train on counts. A trigger
that is not one token of the tokenizer is never counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.arguments import check_arguments
from rlvr_jax.experience import Stage, experience
from rlvr_jax.experience.rewards.choice import first_of_largest
from rlvr_jax.objectives import masked_count, masked_mean, masked_quantile, masked_rank, masked_sum
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_mean, group_z_score, has_tokens
from rlvr_jax.objectives.statistics.scopes import scoped_quantile, within_response
from rlvr_jax.types import (
    Method,
    Recipe,
    Rollouts,
    Shown,
    arguments_of,
    declare,
    is_correct,
    replace,
)
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    DualClip,
    Epsilon,
    NonNegative,
    Positive,
    Range,
)
from rlvr_jax.types.parts import part

declare("trigger", Bool[Array, "B T"], "where the likeliest token begins a second thought")

Percentile = Annotated[float, Range(0, 100)]
Keep = Annotated[float, Range(0, 1, open_high=True)]

EASY, MEDIUM, HARD = 0, 1, 2
INCORRECT_FACTORS = (0.6, 0.8, 1.0)  # of the score of incorrect rollouts, by difficulty


@dataclass(frozen=True)
class HesitationScale:
    """Constants of the score. Tuples hold one entry each for easy, medium and hard prompts.

    Fields:
      size: α, the largest score of an easy prompt.
      margin: f, fraction of the target that is free.
      bend: κ, where the penalty turns from square to linear, in counts.
      temperature: T of the sigmoids, in counts.
      cap: factor of α.
    """

    size: Positive = 0.5
    margin: tuple[NonNegative, ...] = (0.15, 0.25, 0.35)
    bend: tuple[Positive, ...] = (2.0, 3.0, 4.0)
    temperature: tuple[Positive, ...] = (2.0, 2.5, 3.0)
    cap: tuple[NonNegative, ...] = (1.0, 1.0, 1.2)

    def __post_init__(self) -> None:
        check_arguments(HesitationScale, vars(self))
        for name in ("margin", "bend", "temperature", "cap"):
            if len(entries := getattr(self, name)) != 3:
                raise ValueError(f"HesitationScale: {name} must have three entries, got {entries}")


@part(writes=frozenset({"trigger"}), by_row=True)
def mark_triggers(words: Sequence[str]) -> Stage:
    """Marks the positions whose likeliest token is one of the words.

    A word counts in lower case and capitalized, with and without a space before it, in each
    spelling that is one token.

    Scores: each response once. Metrics: triggers (per row).
    Raises:
      ValueError: no words; in a run, words of which none is one token of the tokenizer.
    """
    if not words:
        raise ValueError("mark_triggers: words must be at least one, got none")

    def apply(batch, actor, state, turn):
        spelled = [
            form for word in words for form in (word, f" {word}", word.title(), f" {word.title()}")
        ]
        tokens = [list(actor.encode(form)) for form in spelled]
        ids = sorted({own[0] for own in tokens if len(own) == 1})
        if not ids:
            raise ValueError(
                f"mark_triggers: words must be tokens of the policy's tokenizer, got {list(words)},"
                " of which none is one"
            )
        likeliest = actor.score(batch, ["max_id"])["max_id"]
        trigger = np.isin(likeliest, ids) & batch.rollouts.mask
        metrics = {"triggers": float(trigger.sum()) / len(batch)}
        return batch.with_rollouts(trigger=trigger), state, metrics

    return apply


class ThresholdState(NamedTuple):
    """Running mean of the threshold of the window entropy (nats), and whether there is one."""

    threshold: Float[Array, ""]
    is_set: Bool[Array, ""]

    def moved(self, measured: Float[Array, ""], keep: float) -> ThresholdState:
        """The state after a batch: the first threshold, then keep · old + (1 - keep) · new."""
        measured = measured.astype(self.threshold.dtype)
        mean = keep * self.threshold + (1 - keep) * measured
        return ThresholdState(jnp.where(self.is_set, mean, measured), jnp.ones((), bool))


@part(writes={"advantage"})
def hesitation_advantage(
    window: Count = 4,
    percentile: Percentile = 95.0,
    threshold_keep: Keep = 0.99,
    scale: HesitationScale | None = None,
    epsilon: Epsilon = 1e-6,
) -> Transform:
    """Group-normalized advantages of reward plus `hesitation_score`.

    The threshold is the running mean over earlier batches, in the first batch its own threshold.

    Args:
      window: tokens whose entropy is averaged (w).
      percentile: percentile of a response's window entropies that is its threshold.
      threshold_keep: weight of the old running mean of the threshold.
      scale: constants of the score (α, f, κ, T and caps), a `HesitationScale`; None: the authors'.
    Metrics: hesitation_threshold (nats), hesitation_count, hesitation_score (means over the
      rollouts with tokens).
    """
    scale = HesitationScale() if scale is None else scale

    def init(spec):
        return ThresholdState(jnp.zeros((), float), jnp.zeros((), bool))

    def apply(signals, context, state):
        rollouts, group = context.rollouts, context.rollouts.group
        entropy, dtype = rollouts.entropy, rollouts.reward.dtype
        measured = batch_threshold(entropy, rollouts, window, percentile)
        threshold = jnp.where(state.is_set, state.threshold.astype(dtype), measured)
        count = hesitation_count(entropy, rollouts, threshold, window)
        level = difficulty_level(rollouts.outcome, group)
        written = has_tokens(rollouts.mask)
        target = hesitation_target(count, level, group, rollouts.rollout_id, written, dtype)
        correct = is_correct(rollouts.outcome)
        score = hesitation_score(count, target, level, correct, scale)
        advantage = group_z_score(rollouts.reward + score, group, epsilon)[:, None]
        any_token = jnp.any(signals.mask)
        moved = state.moved(measured, threshold_keep)
        state = jax.tree.map(lambda new, old: jnp.where(any_token, new, old), moved, state)
        metrics = {
            "hesitation_threshold": threshold,
            "hesitation_count": masked_mean(count, written).astype(dtype),
            "hesitation_score": masked_mean(score, written),
        }
        signals = replace(signals, advantage=jnp.where(signals.mask, advantage, 0))
        return signals, state, metrics

    return Transform(apply, init=init, reads={"trigger", "sampled_entropy"})


def batch_threshold(
    entropy: Float[Array, "B T"], rollouts: Rollouts, window: int, percentile: float
) -> Float[Array, ""]:
    """Median of `response_threshold` over the rows with tokens; 0 without any.

    Args:
      entropy: of the tokens, nats, [B, T].
      rollouts: the batch.
      window: tokens whose entropy is averaged (w).
      percentile: that of `response_threshold`, from 0 to 100.
    """
    thresholds = response_threshold(entropy, rollouts, window, percentile)
    return masked_quantile(thresholds, jnp.any(rollouts.mask, axis=1), 0.5)


def response_threshold(
    entropy: Float[Array, "B T"], rollouts: Rollouts, window: int, percentile: float
) -> Float[Array, "B"]:
    """The percentile of a response's window entropies.

    A missing window counts as the mean of those before it, and in a response without any window as
    the entropy of its first token.

    Args:
      entropy: of the tokens, nats, [B, T].
      rollouts: the batch.
      window: tokens whose entropy is averaged (w).
      percentile: percentile of a response's window entropies, from 0 to 100.
    """
    mask = rollouts.mask
    values, exists = window_entropy(entropy, mask, window)
    first = mask & (masked_rank(mask) == 1)
    own = jnp.where(
        jnp.any(exists, axis=1), masked_mean(values, exists, axis=1), masked_sum(entropy, first, 1)
    )
    filled = jnp.where(exists, values, own[:, None])
    return scoped_quantile(filled, mask, within_response(rollouts), percentile / 100)[:, 0]


def window_entropy(
    entropy: Float[Array, "B T"], mask: Bool[Array, "B T"], window: int
) -> tuple[Float[Array, "B T"], Bool[Array, "B T"]]:
    """Mean entropy of the `window` masked tokens that follow, and where so many follow; else 0."""
    rows, width = mask.shape
    rank = masked_rank(mask)
    exists = mask & (rank + window <= rank[:, -1:])
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    # Entropies without the holes of the mask; those off the mask go to the unread last column.
    place = jnp.where(mask, rank - 1, width)
    dense = (
        jnp.zeros((rows, width + 1), entropy.dtype).at[row, place].add(jnp.where(mask, entropy, 0))
    )
    total = jnp.zeros_like(entropy)
    for ahead in range(window):
        total = total + dense[row, jnp.minimum(rank + ahead, width)]
    return jnp.where(exists, total / window, 0), exists


def hesitation_count(
    entropy: Float[Array, "B T"], rollouts: Rollouts, threshold: Float[Array, ""], window: int
) -> Int[Array, "B"]:
    """n: trigger words whose window entropy reaches the threshold.

    Args:
      entropy: of the tokens, nats, [B, T].
      rollouts: the batch, with the record `trigger`.
      threshold: window entropy that counts, nats.
      window: tokens whose entropy is averaged (w).
    """
    values, exists = window_entropy(entropy, rollouts.mask, window)
    return masked_count(rollouts.records["trigger"] & exists & (values >= threshold), axis=1)


def difficulty_level(outcome: Float[Array, "B"], group: Int[Array, "B"]) -> Int[Array, "B"]:
    """EASY, MEDIUM or HARD: at least 2/3, at least 1/3, or less of the group is correct."""
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
    """n*: mean over the prompts of a row's difficulty of their mean count, rounded half to even.

    Args:
      count: hesitation words of each row.
      level: difficulty of each row.
      group: number of the prompt of each row.
      rollout_id: number of each row that does not depend on the batch.
      where: the rollouts that count.
      dtype: of the result.
    """
    mean = group_mean(count.astype(dtype), group, where)
    # One row represents each prompt: a sum over all rows would round differently.
    one = first_of_largest(jnp.zeros_like(mean), group, rollout_id, where)
    of_level = jnp.stack(
        [masked_mean(mean, one & (level == kind)) for kind in (EASY, MEDIUM, HARD)]
    )
    return jnp.round(of_level)[level]


def hesitation_score(
    count: Int[Array, "..."],
    target: Float[Array, "..."],
    level: Int[Array, "..."],
    correct: Bool[Array, "..."],
    scale: HesitationScale,
) -> Float[Array, "..."]:
    """s(n, n*), the addition to the reward.

    δ = n - n*, m = max(1, f max(n*, 1)), c = α · cap, σ_T(x) = 1 / (1 + e^(-x/T)). h(x) is x² / 2κ
    up to κ and x - κ/2 beyond:

        easy, correct    -min(c, c h((δ - m)⁺) / (m + κ))
        medium, correct  -min(c, c h((|δ| - m)⁺) / (m + κ))
        hard, correct    c σ_T(δ + m) if δ ≥ -m, else -min(c, ½ c h(-δ - m) / (m + κ))
        incorrect        c σ_T((δ - m)⁺) · 0.6, 0.8 or 1

    Args:
      count: number of hesitation words of the response (n).
      target: target number of hesitation words (n*).
      level: difficulty of the prompt: `EASY`, `MEDIUM` or `HARD`.
      correct: whether the response is correct.
      scale: the constants α, f, κ, T and cap.
    """
    dtype = target.dtype

    def of_level(entries):
        return jnp.asarray(entries, dtype)[level]

    free, bend, temperature = (of_level(x) for x in (scale.margin, scale.bend, scale.temperature))
    most = scale.size * of_level(scale.cap)
    excess = count.astype(dtype) - target
    margin = jnp.maximum(1, free * jnp.maximum(target, 1))

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
    incorrect = gain(jnp.maximum(excess - margin, 0)) * of_level(INCORRECT_FACTORS)
    return jnp.where(correct, earned, incorrect)


@arguments_of(hesitation_advantage)
def ares(
    triggers: str = "wait however but alternatively hmm maybe actually",
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.3,
    dual_clip: DualClip = 3.0,
    **hesitation: Any,
) -> Recipe:
    """Applies clip-higher, with a reward for hesitation that fits the difficulty.

    Args:
      triggers: words that begin a second thought, separated by spaces; spellings that are one
        token of the policy's tokenizer count.
    """
    advantage = hesitation_advantage(**hesitation)
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, advantage=advantage, dual_clip=dual_clip),
        experience=experience(stages=[mark_triggers(triggers.split())]),
    )


METHOD = Method(
    ares,
    changes="reward, surrogate",
    baseline="signal",
    shown=Shown("brackets", "hesitation_count", hyperparameters={"triggers": ";"}),
)
