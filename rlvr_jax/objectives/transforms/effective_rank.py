"""How many directions the hidden states of a response fill, how that grows, and a bonus for it."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import has_tokens
from rlvr_jax.objectives.statistics.masked import masked_count, masked_mean
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Bound, Count, NonNegative, Share
from rlvr_jax.types.parts import part

__all__ = [
    "Exploration",
    "RankAverages",
    "RankTrend",
    "credit_rank_growth",
    "effective_rank",
    "every_token",
    "exploration",
    "exploration_bonus",
    "rank_trend",
]


def effective_rank(states: Float[Array, "T D"], mask: Bool[Array, "T"]) -> Float[Array, ""]:
    """exp(-Σ p ln(p + 1e-8)), p the singular values of the centred states over their sum + 1e-8.

    0 for fewer than two states. By a singular value decomposition: eigenvalues of the Gram matrix
    near 0 would be inflated by the root.

    Args:
      states: one vector per token.
      mask: the tokens that count.
    """
    count = masked_count(mask)
    mean = jnp.sum(jnp.where(mask[:, None], states, 0), axis=0)
    mean = mean / jnp.maximum(count, 1).astype(states.dtype)
    centered = jnp.where(mask[:, None], states - mean[None], 0)
    values = jnp.linalg.svd(centered, compute_uv=False)
    p = values / (jnp.sum(values) + 1e-8)
    return jnp.where(count >= 2, jnp.exp(-jnp.sum(p * jnp.log(p + 1e-8))), 0)


class RankTrend(NamedTuple):
    """The effective rank of each response, its mean rise and the mean change of the rise, [B]."""

    rank: Float[Array, "B"]
    velocity: Float[Array, "B"]
    acceleration: Float[Array, "B"]


def rank_trend(
    states: Float[Array, "B T D"], mask: Bool[Array, "B T"], stride: int, window: int
) -> RankTrend:
    """The effective rank of each response, and of growing prefixes of its last tokens.

    Of the n tokens in the window, x_j is the effective rank of the first j s + 1, for j s < n; d_j
    = x_j - mean(x_1 … x_{j-1}) from j = 2 on; velocity = mean d_j, acceleration = mean (d_j -
    d_{j-1}). A mean over nothing is 0. One decomposition per prefix, row by row: memory is that of
    one row's prefixes.

    Args:
      states: last hidden states.
      mask: the tokens that count.
      stride: s.
      window: how many tokens at the end of the response the trend looks at.
    Source: VERL, https://github.com/hf618/VERL.
    """
    width = min(window, mask.shape[1])
    ends = jnp.arange(stride, width, stride, dtype=jnp.int32)

    def one(row):
        states, mask = row
        count, level = masked_count(mask), effective_rank(states, mask)
        place = jnp.cumsum(mask, dtype=jnp.int32) - 1 - jnp.maximum(count - width, 0)
        inside = mask & (place >= 0)
        # The window's tokens, in order, at the front.
        column = jnp.where(inside, place, width)
        states = (
            jnp.zeros((width, states.shape[1]), states.dtype).at[column].set(states, mode="drop")
        )
        place = jnp.arange(width, dtype=jnp.int32)
        inside = place < count
        ranks = [level]
        if ends.size:
            prefixes = inside[None] & (place[None] <= ends[:, None])
            prefix_ranks = jax.vmap(effective_rank, (None, 0))(states, prefixes)
            ranks += _changes(prefix_ranks, ends < masked_count(inside))
        else:
            ranks += [jnp.zeros_like(ranks[0])] * 2
        return RankTrend(*ranks)

    return jax.lax.map(one, (states, mask))


def _changes(ranks, reached):
    """Velocity and acceleration of the ranks of the prefixes that a response reaches."""
    number = jnp.arange(ranks.size).astype(ranks.dtype)
    ranks = jnp.where(reached, ranks, 0)
    before = (jnp.cumsum(ranks) - ranks) / jnp.maximum(number, 1)
    rise = ranks - before
    has_rise = reached & (number >= 1)
    change = rise - jnp.roll(rise, 1)
    return [masked_mean(rise, has_rise), masked_mean(change, reached & (number >= 2))]


class RankAverages(NamedTuple):
    """State of `credit_rank_growth`: moving means of rank, velocity and acceleration, [3]."""

    values: Float[Array, "3"]


class Exploration(NamedTuple):
    """How much a response explores, [B].

    Fields:
      weight: β, 1 where the rank accelerates: then its level counts, else its velocity.
      amount: in (-1, 1).
    """

    weight: Float[Array, "B"]
    amount: Float[Array, "B"]


def exploration(trend: RankTrend, averages: Float[Array, "3"], gain: float) -> Exploration:
    """β = σ(g δ_acceleration); amount = β tanh(δ_rank) + (1 - β) tanh(δ_velocity).

    δ_X = (X - average) / (|average| + 1e-8), clipped to ±5.

    Args:
      trend: of each response.
      averages: moving means of the same three numbers.
      gain: g.
    """
    pairs = zip(trend, averages, strict=True)
    rank, velocity, acceleration = (
        jnp.clip((own - mean) / (jnp.abs(mean) + 1e-8), -5, 5) for own, mean in pairs
    )
    weight = jax.nn.sigmoid(gain * acceleration)
    return Exploration(weight, weight * jnp.tanh(rank) + (1 - weight) * jnp.tanh(velocity))


def exploration_bonus(
    amount: Float[Array, "..."], advantage: Float[Array, "..."], divisor: float
) -> Float[Array, "..."]:
    """min(max(amount, 0), |A| / κ): never a malus, and never turns the sign for κ ≥ 1."""
    return jnp.minimum(jnp.maximum(amount, 0), jnp.abs(advantage) / divisor)


def every_token(mask: Bool[Array, "B T"]) -> Bool[Array, "B T"]:
    """All tokens on the mask."""
    return mask


@part(writes={"advantage"})
def credit_rank_growth(
    stride: Count,
    window: Count,
    smoothing: Share,
    gain: NonNegative,
    divisor: Bound,
    where: Callable[[Array], Array] = every_token,
) -> Transform:
    """Pays responses whose hidden states explore: A' = A + `exploration_bonus`.

    The averages are moving means of the means over the rollouts with tokens, m' = (1 - a) m + a ·
    mean, from 0 and moved after use, once per update; at the first update all deviations are at
    their bounds. A batch without tokens leaves them.

    Args:
      stride, window: of `rank_trend`, in tokens.
      smoothing: a, in (0, 1].
      gain: of `exploration`, at least 0.
      divisor: κ of `exploration_bonus`, positive; inf for no bonus.
      where: (mask) -> bool [B, T], the tokens that are paid: `every_token` or `is_last_token`.
    Reads: advantage, hidden, mask. Writes: advantage. Metrics: effective_rank, rank_velocity,
      rank_acceleration, those means.
    Raises:
      ValueError: stride or window below 1, or a number outside its range.
    Source: VERL, https://github.com/hf618/VERL.
    """

    def init(spec):
        del spec
        return RankAverages(jnp.zeros(3, float))

    def apply(signals, context, state):
        mask = signals.mask
        hidden = jax.lax.stop_gradient(context.stats.hidden)
        trend = rank_trend(hidden, mask, stride, window)
        found = exploration(trend, state.values.astype(hidden.dtype), gain)
        bonus = exploration_bonus(found.amount[:, None], signals.advantage, divisor)
        advantage = signals.advantage + jnp.where(where(mask), bonus, 0)
        written = has_tokens(mask)
        means = jnp.stack([masked_mean(values, written) for values in trend])
        moved = (1 - smoothing) * state.values + smoothing * means.astype(state.values.dtype)
        state = RankAverages(jnp.where(jnp.any(mask), moved, state.values))
        names = ("effective_rank", "rank_velocity", "rank_acceleration")
        metrics = dict(zip(names, means, strict=True))
        return replace(signals, advantage=advantage), state, metrics

    return Transform(apply, init=init, reads={"hidden", "batch_statistics"})
