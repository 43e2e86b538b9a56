"""GDRO: prompts are binned by difficulty, and bins with high losses weigh more.

"Group Distributionally Robust Optimization-Driven Reinforcement Learning for LLM Reasoning",
https://github.com/kishanpb/verl-gdro

    S_b  ← (1 - β) S_b + β ℓ_b, the moving average of the loss of bin b
    q_b  = (1 - γ) softmax(η S)_b + γ / K over the K bins of the batch
    A'_i = A_i · min(q_b(i) / mean q, 15), A_i = (R_i - mean) / (std + 1e-6)
    loss = Σ [max(-A' ρ, -A' clip(ρ, 1 - ε_low, 1 + ε_high)) + κ k3(π ‖ π_ref)] / Σ n_i

Constants and the normalized weight are those of the authors' code; the paper multiplies by
min(exp(η S_b), cap) (`exponential_weights`). Their ℓ is the clipped surrogate loss, whose mean over
a group is about 0; ours is 1 - outcome, as the paper's argument wants. Bins are by the pass rate in
the batch, and prompts that are always or never solved have no bin of their own; the authors bin by
the last 50 visits, with a margin (`difficulty_bins`). Numbers of rollouts per bin: `choose_arms`.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike

from rlvr_jax.objectives.advantages.group_relative import group_normalized
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_has_tokens, group_mean
from rlvr_jax.objectives.statistics.masked import masked_max, masked_mean
from rlvr_jax.types import Method, Recipe, Rollouts, replace
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Epsilon,
    KLCoefficient,
    NonNegative,
    Temperature,
    Unit,
)
from rlvr_jax.types.parts import part


def arm_probabilities(
    scores: ArrayLike, temperature: float = 0.65, mixing: float = 0.01
) -> np.ndarray:
    """(1 - γ) softmax(η score) + γ / #arms over the arms of each bin.

    Args:
      scores: [bins, arms].
      temperature: η.
      mixing: γ, share that is spread evenly.
    """
    scaled = temperature * np.asarray(scores)
    power = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    softmax = power / power.sum(axis=1, keepdims=True)
    return (1 - mixing) * softmax + mixing / scaled.shape[1]


def choose_arms(
    probabilities: ArrayLike, num_prompts: Sequence[int], arms: Sequence[int], budget: float
) -> tuple[np.ndarray, int]:
    """One arm per bin: the total nearest to the budget, and among those the likeliest choice.

    Dynamic programming over the reachable totals.

    Args:
      probabilities: [bins, arms], positive.
      num_prompts: prompts of each bin.
      arms: numbers of rollouts to choose from.
      budget: n̄, wanted mean number of rollouts per prompt.
    Returns:
      The chosen numbers of rollouts, int [bins], and the total they use.
    """
    best = {0: (0.0, ())}  # total -> (log-probability, choices)
    for row, prompts in zip(np.log(np.asarray(probabilities)), num_prompts, strict=True):
        reached = {}
        for total, (likelihood, choices) in best.items():
            for arm, gain in zip(arms, row, strict=True):
                new = (likelihood + float(gain), (*choices, arm))
                used = total + arm * int(prompts)
                if used not in reached or new[0] > reached[used][0]:
                    reached[used] = new
        best = reached
    wanted = budget * sum(num_prompts)
    total = min(best, key=lambda used: (abs(used - wanted), -best[used][0]))
    return np.asarray(best[total][1], int), total


def dual_step(price: float, mean_rollouts: float, budget: float, rate: float = 0.05) -> float:
    """μ ← μ + rate (n - n̄): the price of a rollout rises while more than the budget are used."""
    return price + rate * (mean_rollouts - budget)


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
    Metrics: largest_bin_weight.
    Raises:
      ValueError: edges not ascending in (0, 1), or a number outside its range.
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


def gdro(
    edges: Sequence[float] = (0.4, 0.75),
    rate: float = 0.12,
    temperature: Temperature = 0.65,
    mixing: float = 0.01,
    max_weight: float = 15.0,
    by_share: bool = True,
    kl_coefficient: KLCoefficient = 0.001,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
    bins: Callable[[Rollouts], Array] | None = None,
) -> Recipe:
    """Group-normalized advantages, weighted by an adversary over bins of difficulty.

    Args:
      edges: of the bins, in pass rate.
      rate: of the moving average of losses (β).
      mixing: share of the weight that is spread evenly (γ).
      max_weight: largest weight.
      by_share: divide a bin's loss by its share of the batch, as the authors' scripts do.
      bins: rollouts -> bin [B], where pass rates of a longer history are kept; None: of the batch.
    """
    weights = hard_bins_first(edges, rate, temperature, mixing, max_weight, by_share, bins)
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            transforms=[weights],
            kl_coefficient=kl_coefficient,
        )
    )


METHOD = Method(
    gdro,
    "Group Distributionally Robust Optimization-Driven Reinforcement Learning for LLM Reasoning",
    "https://github.com/kishanpb/verl-gdro",
    changes="advantage, regularizer",
    left_out="pass rates over many visits of a prompt; numbers of rollouts by difficulty",
    reports=(
        "Qwen3 base 1.7B, 4B, 8B over GRPO: pass@8 up by 9.7, 13.1 and 9.0 % (weights), by 10.6, "
        "10.6 and 9.2 % (numbers of rollouts)"
    ),
    traps=(
        "`by_share` makes a rare bin's loss extreme; groups of equal rewards carry weight without "
        "a gradient; the authors' surrogate loss is about 0 on average, so their weights follow "
        "noise"
    ),
)
