"""DARS: more rollouts for hard prompts instead of more weight.

"Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
https://github.com/yangzhch6/DARS

    1. N responses to each prompt, of which a share u is right
    2. ΔN more for prompts with u < ½: S = 2u(1 - u), u = 0.5/N if none is right,
       equal treatment   ΔN = ⌈(N/2 - N S) / S⌉
       by hardness       ΔN = ⌈(2(1 - u) N/2 - N S) / S⌉, at most N_max - N
    3. A_i  = R_i - mean over all N + ΔN rollouts of the prompt
       loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over mixed groups

The advantages of a prompt add up to N · 2u(1 - u), little for a hard one. Groups differ in size,
and those that are all right or all wrong are dropped: an unlucky prompt gets the most rollouts, and
if these are wrong, too, all are wasted. N is 8 and N_max 32 (equal treatment) or 64 (by hardness:
give `most=8`). DARS-B takes one full-batch step on 3072 prompts, twice, at a learning rate of 5e-6;
these are settings of a run. The clip is ours. In the authors' code the second call samples with the
validation switch set; here both are drawn at the temperature of training.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rlvr_jax.experience import experience, refill, uniform
from rlvr_jax.experience.parts import Stage
from rlvr_jax.objectives.advantages.group_relative import group_centered
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import group_mean, group_std, group_sum
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Range
from rlvr_jax.types.parts import Function, part

Budget = Callable[[np.ndarray, int], np.ndarray]
"""(outcomes [G, N], NaN without a verdict; most rows of a group) -> int [G], rows to add."""


@part
def budget_for_hard(by_hardness: bool = False, normalized: bool = False) -> Function:
    """More rows for hard prompts, so that their advantages add up to enough; see `extra_rollouts`.

    An outcome counts as right above ½; N is the number of columns.

    Args:
      by_hardness, normalized: as in `extra_rollouts`.
    """

    def count(outcomes: np.ndarray, most: int) -> np.ndarray:
        right = np.sum(np.nan_to_num(outcomes) > 0.5, axis=1)
        size = outcomes.shape[1]
        extra = extra_rollouts(right, size, most, by_hardness=by_hardness, normalized=normalized)
        return np.asarray(extra)

    return count


@part
def draw_more(budget: Budget, most: Annotated[float, Range(1)]) -> Stage:
    """Draws more rows for some groups, whose sizes then differ.

    The new rows stand behind the first ones, in the same group. Their number depends on the first
    outcomes, so that the share of right ones among all is unbiased only given that rule.

    Args:
      budget: how many, such as `budget_for_hard()`.
      most: rows of a group in the end at most, as a multiple of the first ones.
    Reads: outcome. Draws: what the budget says. Metrics: extra_rows (share of the first ones),
      extra_groups (share of the groups that got some).
    """

    def apply(batch, actor, state, turn):
        outcomes = batch.outcomes()
        limit = int(most * outcomes.shape[1])
        extra = np.clip(budget(outcomes, limit), 0, limit - outcomes.shape[1])
        told = {
            "extra_rows": float(extra.sum() / len(batch)),
            "extra_groups": float(np.mean(extra > 0)),
        }
        if not extra.any():
            return batch, state, told
        # Row by row: one program of the sampler, however many a group gets.
        asks = [
            replace(batch.asks[rows[0]], samples=1, first_sample=place)
            for rows, number in zip(batch.groups, extra, strict=True)
            for place in range(number)
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        sizes = extra[extra > 0]
        group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        drawn = drawn.with_rollouts(group=group).renumbered()
        return batch.with_groups(extra > 0, drawn, "append"), state, told

    return Stage(apply, most=float(most))


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


def depth_breadth_dars(
    by_hardness: bool = False,
    most: float = 4.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
) -> Recipe:
    """Centered advantages and clip-higher on the token mean of groups of mixed outcomes.

    Args:
      by_hardness: harder prompts get more than equal treatment.
      most: rollouts of a prompt at most (N_max), as a multiple of the first ones.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low, clip_high=clip_high, advantage=group_centered()
        ),
        experience=experience(
            stages=[
                draw_more(budget_for_hard(by_hardness), most),
                # Further prompts would come without their extra rollouts.
                refill(uniform, rounds=1),
            ]
        ),
    )


METHOD = Method(
    depth_breadth_dars,
    "Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration",
    "https://github.com/yangzhch6/DARS",
    changes="advantage, selection, sampling",
    reports=(
        "Qwen2.5-Math 1.5B and 7B, Llama 8B: pass@k rises and pass@1 holds; with very large "
        "batches both rise (abstract)"
    ),
    traps=(
        "an unlucky prompt draws the most, all in vain if it stays unsolved; hard prompts have "
        "more rows and so more weight in the token mean; `by_hardness` wants `most=8`"
    ),
)
