"""Rewards for short or long responses. Lengths are tokens of the response, as given in `length`.

With statistics of a group a length term alone orders groups that are all right or all wrong: gate
it on mixed ones, or give it an advantage of its own. Responses that the budget cut are wrong and
longest, so that a penalty for length counts twice on them.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.arguments import check_at_least, check_count, check_finite
from rlvr_jax.objectives.regularizers.preferences import outcome_is_right
from rlvr_jax.objectives.rewards.parts import Shaping, shaping
from rlvr_jax.objectives.shaping import check_overlong, overlong_penalty
from rlvr_jax.objectives.statistics.groups import (
    group_count,
    group_deviation,
    group_max,
    group_spread,
    group_std,
)
from rlvr_jax.types.parts import Function, part

__all__ = [
    "cosine_length",
    "length_cosine",
    "length_excess",
    "overlong_excess",
    "relative_length",
    "short_of_group",
    "shortness",
    "standardized_length",
    "steady_reasoning",
]

Rows = Float[Array, "B"]
Right = Bool[Array, "B"]
Groups = Int[Array, "B"]


def cosine_length(length: Rows, max_length: int, at_start: float, at_end: float) -> Rows:
    """b + (a - b) (1 + cos(π n / L)) / 2: a at length 0, b from L on.

    Args:
      length: n.
      max_length: L; without the bound the cosine would rise again behind it.
      at_start, at_end: a and b.
    Source: https://github.com/knoveleng/open-rs, "Demystifying Long Chain-of-Thought".
    """
    share = jnp.minimum(length / max_length, 1)
    return at_end + (at_start - at_end) * (1 + jnp.cos(math.pi * share)) / 2


def relative_length(length: Rows, right: Right, group: Groups) -> Rows:
    """λ = ½ - (n - n_min) / (n_max - n_min) over the group; min(0, λ) for wrong ones.

    0 where all lengths of the group are equal.
    Source: Kimi k1.5, https://arxiv.org/abs/2501.12599.
    """
    spread = group_spread(length, group)
    shortest = group_max(length, group) - spread
    share = 0.5 - (length - shortest) / jnp.where(spread > 0, spread, 1)
    return jnp.where(spread > 0, jnp.where(right, share, jnp.minimum(share, 0)), 0)


def shortness(length: Rows, target: float, rate: float) -> Rows:
    """-r max(0, n - target): each token over a target costs the same.

    Args:
      length: n.
      target: tokens that are free.
      rate: r, of a token.
    """
    return -rate * jnp.maximum(length - target, 0)


def standardized_length(length: Rows, right: Right, group: Groups, epsilon: float = 1e-6) -> Rows:
    """(n - mean) / (std + ε) over the right rows of the group, std with n; 0 on wrong ones.

    0 where fewer than two are right or their lengths are equal.

    Args:
      epsilon: ε, added to the deviation.
    """
    spread = group_std(length, group, ddof=0, where=right)
    scaled = group_deviation(length, group, where=right) / (spread + epsilon)
    return jnp.where(right & (group_count(group, right) > 1), scaled, 0)


@part
def length_cosine(
    max_length: int,
    right: tuple[float, float] = (1.0, 0.5),
    wrong: tuple[float, float] = (-1.0, -0.5),
) -> Function:
    """`cosine_length` with other ends for right and for wrong responses; it replaces the outcome.

    Args:
      max_length: L, tokens.
      right, wrong: what responses of length 0 and of length L earn.
    Raises:
      ValueError: no positive length, or an end that is not finite.
    """
    check_count(1, "length_cosine", max_length=max_length)
    for name, ends in (("right", right), ("wrong", wrong)):
        check_finite("length_cosine", **{f"{name}[{n}]": end for n, end in enumerate(ends)})

    def reward(rollouts):
        length = rollouts.length.astype(rollouts.outcome.dtype)
        good, bad = (cosine_length(length, max_length, *ends) for ends in (right, wrong))
        return jnp.where(outcome_is_right(rollouts.outcome), good, bad)

    return reward


@part
def short_of_group() -> Shaping:
    """`relative_length` of the response in its group, to be added to an outcome."""

    def reward(rollouts):
        length = rollouts.length.astype(rollouts.outcome.dtype)
        return relative_length(length, outcome_is_right(rollouts.outcome), rollouts.group)

    return shaping(reward)


@part
def length_excess(target: float, rate: float) -> Function:
    """`shortness`: -r for each token over the target.

    Raises:
      ValueError: a negative target or rate.
    """
    check_at_least(0, "length_excess", target=target, rate=rate)

    def reward(rollouts):
        return shortness(rollouts.length.astype(rollouts.outcome.dtype), target, rate)

    return reward


@part
def overlong_excess(max_length: int, cache_length: int, factor: float = 1.0) -> Function:
    """`overlong_penalty` alone, to be a part of a `total`.

    Args:
      max_length, cache_length, factor: as there.
    Raises:
      ValueError: cache_length outside (0, max_length], or a negative factor.
    """
    check_overlong("overlong_excess", max_length, cache_length, factor)

    def reward(rollouts):
        penalty = overlong_penalty(rollouts.length, max_length, cache_length, factor)
        return penalty.astype(rollouts.outcome.dtype)

    return reward


def steady_reasoning(length: Rows, scale: float, cap: float | None = 10.0) -> Rows:
    """e = -min(C / L, cap): paid for more reasoning, whatever becomes of it; towards 0 from below.

    Args:
      length: L, tokens of the reasoning; below 1 counts as 1.
      scale: C, the length that costs 1; 0: nothing is paid.
      cap: the most that a short one costs; None: no cap.
    Source: RLSP, https://github.com/GuanghaoYe/Emergence-of-Thinking (without a cap).
    """
    cost = scale / jnp.maximum(length, 1)
    return -(cost if cap is None else jnp.minimum(cost, cap))
