"""Groups that get more rows, by what their first ones were worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.objectives import extra_rollouts
from rlvr_jax.types.hyperparameters import Range
from rlvr_jax.types.parts import Function, part

__all__ = ["Budget", "budget_for_hard", "draw_more"]

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
    Raises:
      ValueError: most below 1.
    Source: DARS draws so (the link stands in the method's card).
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
