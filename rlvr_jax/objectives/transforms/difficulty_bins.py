"""Bins of prompts by difficulty, and adversarial weights on the bins where the loss is high.

Distributionally robust training: an exponential-weights adversary puts more weight on a bin the
higher its average loss has been. Scores are kept per bin, `seen` tells which bins have one.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_has_tokens, group_mean
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean
from rlvr_jax.types import Rollouts, replace
from rlvr_jax.types.hyperparameters import Bound, NonNegative, Unit
from rlvr_jax.types.parts import part

__all__ = [
    "adversarial_shares",
    "bin_losses",
    "difficulty_bins",
    "exponential_weights",
    "hard_bins_first",
    "proportional_weights",
    "updated_scores",
]


def difficulty_bins(
    accuracy: Float[Array, "B"],
    edges: Sequence[float],
    previous: Int[Array, "B"] | None = None,
    margin: float = 0.03,
) -> Int[Array, "B"]:
    """The bin of an accuracy, from 0 (hardest) to the number of edges; an edge is in the upper bin.

    Args:
      accuracy: share of right answers, of a prompt or of whatever is binned.
      edges: ascending.
      previous: the bin so far. It is left only if the accuracy is at least `margin` past the edge
        of number min(previous, new).
      margin: how far past.
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
    by_share: bool = False,
) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
    """Mean loss of the rollouts of each bin, and which bins occur.

    Args:
      loss: of each rollout.
      bins: the bin of its prompt.
      where: the rollouts that count.
      num_bins: K.
      by_share: divide by the bin's share of the batch as well; rare bins become extreme.
    """
    counted = where.astype(loss.dtype)
    count = jax.ops.segment_sum(counted, bins, num_segments=num_bins)
    total = jax.ops.segment_sum(counted * loss, bins, num_segments=num_bins)
    mean = total / jnp.maximum(count, 1)
    if by_share:
        mean = mean * jnp.sum(counted) / jnp.maximum(count, 1)
    return mean, count > 0


def updated_scores(
    scores: Float[Array, "K"],
    seen: Bool[Array, "K"],
    losses: Float[Array, "K"],
    present: Bool[Array, "K"],
    rate: float = 0.12,
) -> tuple[Float[Array, "K"], Bool[Array, "K"]]:
    """S ← ℓ for a bin seen first, (1 - β) S + β ℓ for one seen again; absent bins keep theirs."""
    moved = jnp.where(seen, (1 - rate) * scores + rate * losses, losses)
    return jnp.where(present, moved, scores), seen | present


def adversarial_shares(
    scores: Float[Array, "K"],
    present: Bool[Array, "K"],
    temperature: float = 0.65,
    mixing: float = 0.01,
) -> Float[Array, "K"]:
    """q = (1 - γ) softmax(η S) + γ / K over the K bins present; 0 for the others.

    Args:
      scores: S.
      present: the bins that occur in the batch.
      temperature: η.
      mixing: γ, share that is spread evenly.
    """
    share = jax.nn.softmax(jnp.where(present, temperature * scores, -jnp.inf))
    even = mixing / jnp.maximum(jnp.sum(present.astype(scores.dtype)), 1)
    return jnp.where(present, (1 - mixing) * share + even, 0)


def proportional_weights(
    share: Float[Array, "B"], where: Bool[Array, "B"], max_weight: float = 15.0
) -> Float[Array, "B"]:
    """Shares scaled to mean 1 over the rollouts that count, then capped: the authors' code."""
    mean = masked_mean(share, where)
    return jnp.minimum(share / jnp.where(mean > 0, mean, 1), max_weight)


def exponential_weights(
    score: Float[Array, "B"], temperature: float = 0.65, max_weight: float = 15.0
) -> Float[Array, "B"]:
    """min(exp(η S), cap), not normalized: the paper's form."""
    return jnp.minimum(jnp.exp(temperature * score), max_weight)


@part(writes={"advantage"})
def hard_bins_first(
    edges: Sequence[float] = (0.4, 0.75),
    rate: Unit = 0.12,
    temperature: NonNegative = 0.65,
    mixing: Unit = 0.01,
    max_weight: Bound = 15.0,
    by_share: bool = False,
    bins: Callable[[Rollouts], Array] | None = None,
) -> Transform:
    """A' = A · `proportional_weights` of the bin of the prompt, from scores of earlier updates.

    The score of a bin follows its loss, 1 - outcome. Before the first update all weights are 1.
    Prompts none of whose rollouts has tokens are in no bin.

    Args:
      edges: of the bins, in accuracy: ascending in (0, 1).
      rate: β, of the moving average of losses, in [0, 1].
      temperature, mixing, max_weight: η, at least 0, γ, in [0, 1], and the cap, positive.
      by_share: divide a bin's loss by its share of the batch.
      bins: rollouts -> int [B] in 0 … len(edges), for accuracies of a longer history; None: by the
        mean outcome of the group in this batch.
    Reads: advantage, outcome, group. Writes: advantage. Metrics: largest_bin_weight.
    Raises:
      ValueError: edges not ascending in (0, 1), or a number outside its range.
    Source: GDRO, https://github.com/kishanpb/verl-gdro.
    """
    if list(edges) != sorted(set(edges)) or not all(0 < edge < 1 for edge in edges):
        raise ValueError(f"hard_bins_first: edges must ascend in (0, 1), got {edges}")
    num_bins = len(edges) + 1

    def init(spec):
        del spec
        return jnp.zeros(num_bins, float), jnp.zeros(num_bins, bool)

    def apply(signals, context, state):
        rollouts, (scores, seen) = context.rollouts, state
        outcome = rollouts.outcome
        own = (
            bins(rollouts) if bins else difficulty_bins(group_mean(outcome, rollouts.group), edges)
        )
        counted = group_has_tokens(rollouts.mask, rollouts.group)
        losses, present = bin_losses(1 - outcome, own, counted, num_bins, by_share)
        share = adversarial_shares(scores.astype(outcome.dtype), present, temperature, mixing)
        weight = proportional_weights(share[own], counted, max_weight)
        signals = replace(signals, advantage=signals.advantage * weight[:, None])
        state = updated_scores(scores, seen, losses.astype(scores.dtype), present, rate)
        return signals, state, {"largest_bin_weight": masked_max(weight, counted)}

    return Transform(apply, init=init, once=True)
