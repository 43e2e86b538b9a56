"""How many more rollouts a hard prompt is worth, so that its advantages add up to enough."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.objectives.statistics.groups import group_mean, group_std, group_sum

__all__ = ["extra_rollouts", "total_advantage"]


def extra_rollouts(
    num_right: Int[Array, "..."],
    group_size: int,
    max_rollouts: int,
    *,
    by_hardness: bool = False,
    normalized: bool = False,
) -> Int[Array, "..."]:
    """Rollouts to draw on top of the first N, by how many of those are right.

    With u the share of right ones (0.5 / N for none), S = 2 u (1 - u) is the mean |A| of centered
    advantages and N / 2 their largest sum (normalized: 2 sqrt(u (1 - u)) and N). For u < ½

        equal treatment   ⌈(largest - N S) / S⌉             every prompt reaches that sum
        by hardness       ⌈(2 (1 - u) largest - N S) / S⌉   up to twice that

    and 0 for u ≥ ½; at most max_rollouts - N. Counted in integers: quotients of floats round up.

    Args:
      num_right: of the first N rollouts, in [0, N].
      group_size: N.
      max_rollouts: most rollouts of a prompt, at least N.
      by_hardness: harder prompts get more than equal treatment.
      normalized: the advantages are divided by the standard deviation.
    Raises:
      ValueError: group_size not positive, or max_rollouts below it.
    Source: https://github.com/yangzhch6/DARS.
    """
    if not 0 < group_size <= max_rollouts:
        raise ValueError(
            f"extra_rollouts: group_size must be in [1, max_rollouts {max_rollouts}],"
            f" got {group_size}"
        )
    table = [
        min(_extra(right, group_size, by_hardness, normalized), max_rollouts - group_size)
        for right in range(group_size + 1)
    ]
    return jnp.asarray(table, jnp.int32)[num_right]


def total_advantage(
    outcome: Float[Array, "B"], group: Int[Array, "B"], *, normalized: bool = False
) -> Float[Array, "B"]:
    """Σ |R - u| over the group, given to each of its rows: what a prompt contributes.

    Args:
      outcome: of each rollout.
      group: id of the group of each rollout.
      normalized: divided by the population's standard deviation, 0 where that is 0.
    """
    total = group_sum(jnp.abs(outcome - group_mean(outcome, group)), group)
    if not normalized:
        return total
    spread = group_std(outcome, group, ddof=0)
    return jnp.where(spread > 0, total / jnp.where(spread > 0, spread, 1), 0)


def _extra(right, size, by_hardness, normalized):
    """With u = h / 2N all quotients are N-fold ratios of integers, or roots of such."""
    h = max(2 * right, 1)
    if h >= size:
        return 0
    miss = 2 * size - h
    if not normalized:
        wanted = -(-(size**2) // h) if by_hardness else -(-(size**3) // (h * miss))
    elif by_hardness:
        wanted = _ceil_sqrt(size**2 * miss, h)
    else:
        wanted = _ceil_sqrt(size**4, h * miss)
    return max(wanted - size, 0)


def _ceil_sqrt(numerator, denominator):
    """⌈sqrt(numerator / denominator)⌉, exactly."""
    root = math.isqrt(numerator // denominator)
    return root if root * root * denominator == numerator else root + 1
