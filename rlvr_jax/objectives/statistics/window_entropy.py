"""Entropy of what follows a token, and how often a response hesitates."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.statistics.masked import (
    masked_count,
    masked_mean,
    masked_quantile,
    masked_rank,
    masked_sum,
)
from rlvr_jax.objectives.statistics.scopes import scoped_quantile, within_response
from rlvr_jax.types import Rollouts

__all__ = ["Hesitation", "batch_threshold", "hesitation", "response_threshold", "window_entropy"]


def window_entropy(
    entropy: Float[Array, "B T"], mask: Bool[Array, "B T"], window: int
) -> tuple[Float[Array, "B T"], Bool[Array, "B T"]]:
    """Mean entropy of the `window` tokens that follow, holes of the mask skipped.

    Args:
      entropy: nats.
      mask: the tokens that count.
      window: w, positive.
    Returns:
      The means, 0 where fewer than w tokens follow, and where there are w.
    """
    rows, width = mask.shape
    rank = masked_rank(mask)
    exists = mask & (rank + window <= rank[:, -1:])
    row = jnp.arange(rows, dtype=jnp.int32)[:, None]
    # The entropies of the tokens without holes; what is off the mask goes to the end, unread.
    place = jnp.where(mask, rank - 1, width)
    dense = (
        jnp.zeros((rows, width + 1), entropy.dtype).at[row, place].add(jnp.where(mask, entropy, 0))
    )
    total = jnp.zeros_like(entropy)
    for ahead in range(window):
        total = total + dense[row, jnp.minimum(rank + ahead, width)]
    return jnp.where(exists, total / window, 0), exists


def response_threshold(
    entropy: Float[Array, "B T"], rollouts: Rollouts, window: int, percentile: float
) -> Float[Array, "B"]:
    """The percentile of a response's window entropies.

    A missing window counts as the mean of those before it, and in a response without any window as
    the entropy of its first token.

    Args:
      entropy: nats.
      rollouts: whose mask says which tokens count.
      window: w, positive.
      percentile: in [0, 100].
    """
    mask = rollouts.mask
    values, exists = window_entropy(entropy, mask, window)
    first = mask & (masked_rank(mask) == 1)
    own = jnp.where(
        jnp.any(exists, axis=1), masked_mean(values, exists, axis=1), masked_sum(entropy, first, 1)
    )
    filled = jnp.where(exists, values, own[:, None])
    return scoped_quantile(filled, mask, within_response(rollouts), percentile / 100)[:, 0]


def batch_threshold(
    entropy: Float[Array, "B T"], rollouts: Rollouts, window: int, percentile: float
) -> Float[Array, ""]:
    """Median of `response_threshold` over the rows with tokens; 0 without any."""
    thresholds = response_threshold(entropy, rollouts, window, percentile)
    return masked_quantile(thresholds, jnp.any(rollouts.mask, axis=1), 0.5)


class Hesitation(NamedTuple):
    """How a response hesitates.

    Fields:
      count: [B], trigger words with a window entropy at or above the threshold.
      soft_cost: [B], sum over the trigger words of what their windows are above the threshold.
    """

    count: Int[Array, "B"]
    soft_cost: Float[Array, "B"]


def hesitation(
    entropy: Float[Array, "B T"],
    rollouts: Rollouts,
    threshold: Float[Array, ""],
    window: int,
) -> Hesitation:
    """Counts the trigger words that uncertain text follows.

    Args:
      entropy: nats.
      rollouts: mask and trigger are read.
      threshold: of the window entropy, nats.
      window: w, positive.
    """
    values, exists = window_entropy(entropy, rollouts.mask, window)
    word = rollouts.trigger & exists
    above = word & (values >= threshold)
    return Hesitation(
        masked_count(above, axis=1), masked_sum(jnp.maximum(values - threshold, 0), word, axis=1)
    )
