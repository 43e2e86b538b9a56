"""GDRO: prompts are binned by difficulty, and bins with a high loss get larger weights.

"Group Distributionally Robust Optimization-Driven Reinforcement Learning for LLM Reasoning",
https://github.com/kishanpb/verl-gdro

    S_b  ← (1 - β) S_b + β ℓ_b, the moving average of the loss of bin b
    q_b  = (1 - γ) softmax(η S)_b + γ / K over the K bins of the batch
    A'_i = A_i · min(q_b(i) / mean q, 15), A_i = (R_i - mean) / (std + 1e-6)
    loss = Σ [max(-A' ρ, -A' clip(ρ, 1 - ε_low, 1 + ε_high)) + κ k3(π ‖ π_ref)] / Σ n_i

Constants and the normalized weight are those of the authors' code. The paper multiplies by
min(exp(η S_b), cap) instead. The code's ℓ is the clipped surrogate loss, whose mean over a group is
about 0, so its weights follow noise. Here ℓ is 1 - outcome, the loss of the paper's argument. Bins
are by the pass rate in the batch. The authors bin by the last 50 samples of a prompt, with a margin
(`difficulty_bins`). They put prompts that are always or never solved in no bin.

Left out: pass rates over many epochs of a prompt; numbers of rollouts by difficulty.
Reports: pass@8 of Qwen3 base 1.7B, 4B, 8B relative to GRPO: up by 9.7, 13.1 and 9.0 % with weights,
by 10.6, 10.6 and 9.2 % with numbers of rollouts.
Traps: `by_fraction` makes the loss of a rare bin extreme. Groups of equal rewards have no gradient.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives import Transform, clipped_objective, group_has_tokens, group_mean
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean
from rlvr_jax.types import Method, Recipe, Rollouts, Shown, part, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Epsilon,
    KLCoefficient,
    NonNegative,
    Unit,
)
from rlvr_jax.types.passing import arguments_of

UNIFORM = 1e-4
"""A factor nearer to 1 is that of equal bins, up to rounding."""


@part(writes={"advantage"})
def hard_bins_first(
    edges: Sequence[float] = (0.4, 0.75),
    rate: Unit = 0.12,
    temperature: NonNegative = 0.65,
    mixing: Unit = 0.01,
    max_weight: Bound = 15.0,
    by_fraction: bool = False,
    bins: Callable[[Rollouts], Array] | None = None,
) -> Transform:
    """Multiplies advantages by `proportional_weights` of the prompt's bin, from earlier losses.

    The loss of a bin is 1 - outcome. All weights are 1 before the first update. Prompts without
    response tokens are in no bin.

    Args:
      edges: pass rates between the bins, ascending in (0, 1).
      rate: rate of the moving average of the losses (β).
      temperature: factor on the scores in the softmax (η).
      mixing: fraction of the weight that is spread evenly (γ).
      max_weight: largest weight.
      by_fraction: whether a bin's loss is divided by its part of the batch, as in the scripts.
      bins: (rollouts) -> int [B] in 0 … len(edges), such as `difficulty_bins` of pass rates over a
        longer history; None: by the pass rate in the batch.
    Metrics: largest_bin_weight (largest factor of an advantage), reweighted_fraction (fraction of
      the rows with another factor than 1).
    """
    if list(edges) != sorted(set(edges)) or not all(0 < edge < 1 for edge in edges):
        raise ValueError(f"hard_bins_first: edges must ascend in (0, 1), got {edges}")
    num_bins = len(edges) + 1

    def init(spec):
        return jnp.zeros(num_bins, float), jnp.zeros(num_bins, bool)

    def apply(signals, context, state):
        rollouts, (scores, seen) = context.rollouts, state
        outcome = rollouts.outcome
        if bins is None:
            own = difficulty_bins(group_mean(outcome, rollouts.group), edges)
        else:
            own = bins(rollouts)
        counted = group_has_tokens(rollouts.mask, rollouts.group)
        losses, present = bin_losses(1 - outcome, own, counted, num_bins, by_fraction)
        fraction = adversarial_fractions(scores.astype(outcome.dtype), present, temperature, mixing)
        weight = proportional_weights(fraction[own], counted, max_weight)
        signals = replace(signals, advantage=signals.advantage * weight[:, None])
        state = updated_scores(scores, seen, losses.astype(scores.dtype), present, rate)
        changed = jnp.abs(weight - 1) > UNIFORM
        return (
            signals,
            state,
            {
                "largest_bin_weight": masked_max(weight, counted),
                "reweighted_fraction": masked_mean(changed.astype(weight.dtype), counted),
            },
        )

    return Transform(apply, init=init, once=True)


def difficulty_bins(
    accuracy: Float[Array, "B"],
    edges: Sequence[float],
    previous: Int[Array, "B"] | None = None,
    margin: float = 0.03,
) -> Int[Array, "B"]:
    """The bin of an accuracy, from 0 (hardest) to the number of edges; an edge is in the upper bin.

    Args:
      accuracy: pass rate of the prompt of each row, in [0, 1], [B].
      edges: edges between the bins, ascending; there is one bin more than edges.
      previous: the current bin. It changes only if the accuracy is at least `margin` away from the
        edge with number min(previous, new).
      margin: minimum distance from that edge.
    """
    bounds = jnp.asarray(edges, accuracy.dtype)
    new = jnp.sum(accuracy[:, None] >= bounds[None], axis=1, dtype=jnp.int32)
    if previous is None:
        return new
    previous = previous.astype(new.dtype)
    nearest = bounds[jnp.minimum(jnp.minimum(previous, new), len(edges) - 1)]
    return jnp.where(jnp.abs(accuracy - nearest) >= margin, new, previous)


def bin_losses(
    loss: Float[Array, "B"],
    bins: Int[Array, "B"],
    where: Bool[Array, "B"],
    num_bins: int,
    by_fraction: bool = False,
) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
    """Mean loss of the rollouts of each bin that count (`where`), and which bins occur.

    Args:
      loss: of each rollout, [B].
      bins: bin of each rollout, from 0, int [B].
      where: rollouts that count, bool [B].
      num_bins: number of bins (K).
      by_fraction: also divide by the bin's fraction of the batch, which makes rare bins extreme.
    """
    counted = where.astype(loss.dtype)
    count = jax.ops.segment_sum(counted, bins, num_segments=num_bins)
    total = jax.ops.segment_sum(counted * loss, bins, num_segments=num_bins)
    mean = total / jnp.maximum(count, 1)
    if by_fraction:
        mean = mean * jnp.sum(counted) / jnp.maximum(count, 1)
    return mean, count > 0


def adversarial_fractions(
    scores: Float[Array, "K"], present: Bool[Array, "K"], temperature: float, mixing: float
) -> Float[Array, "K"]:
    """q = (1 - γ) softmax(η S) + γ / K over the K bins that are present; 0 for the others.

    Args:
      scores: moving average of the loss of each bin, [K] (S).
      present: bins that occur in the batch, bool [K].
      temperature, mixing: η and γ.
    """
    fraction = jax.nn.softmax(jnp.where(present, temperature * scores, -jnp.inf))
    even = mixing / jnp.maximum(jnp.sum(present.astype(scores.dtype)), 1)
    return jnp.where(present, (1 - mixing) * fraction + even, 0)


def proportional_weights(
    fraction: Float[Array, "B"], where: Bool[Array, "B"], max_weight: float
) -> Float[Array, "B"]:
    """q divided by its mean over the rollouts that count, then capped, as in the authors' code."""
    mean = masked_mean(fraction, where)
    return jnp.minimum(fraction / jnp.where(mean > 0, mean, 1), max_weight)


def updated_scores(
    scores: Float[Array, "K"],
    seen: Bool[Array, "K"],
    losses: Float[Array, "K"],
    present: Bool[Array, "K"],
    rate: float,
) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
    """S ← ℓ for a bin seen first, (1 - β) S + β ℓ for one seen again; absent bins keep their S.

    Args:
      scores: moving average of the loss of each bin, [K] (S).
      seen: bins that occurred in an earlier batch, bool [K].
      losses: mean loss of each bin in this batch, [K] (ℓ).
      present: bins that occur in this batch, bool [K].
      rate: weight of the new loss, in [0, 1] (β).
    """
    moved = jnp.where(seen, (1 - rate) * scores + rate * losses, losses)
    return jnp.where(present, moved, scores), seen | present


@arguments_of(hard_bins_first, by_fraction=True)
def gdro(
    kl_coefficient: KLCoefficient = 0.001,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
    **weights: Any,
) -> Recipe:
    """Weighs group-normalized advantages by an adversary over bins of difficulty."""
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            epsilon=epsilon,
            transforms=[hard_bins_first(**weights)],
            kl_coefficient=kl_coefficient,
        )
    )


METHOD = Method(
    gdro,
    changes="advantage, regularizer",
    shown=Shown("brackets", "reweighted_fraction"),
    presets={"": {"hyperparameters": ("kl_coefficient=0",)}},
)
