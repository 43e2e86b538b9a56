"""Metrics of several scales as one reward: by the quartiles that a fixed policy had."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean, judged_rows
from rlvr_jax.objectives.statistics.group_order import group_quantile
from rlvr_jax.types.hyperparameters import Count, Positive
from rlvr_jax.types.parts import part

__all__ = ["QuartileState", "by_start_quartiles", "cell_quartiles", "logistic_of_quartiles"]

Rows = Float[Array, "B"]


class QuartileState(NamedTuple):
    """What the start policy scored, by cell.

    Fields:
      quartiles: float32 [C, 3].
      known: bool [C], cells that were seen.
    """

    quartiles: np.ndarray
    known: np.ndarray


def cell_quartiles(
    values: Rows, cell: Int[Array, "B"], where: Bool[Array, "B"] | None = None
) -> tuple[Rows, Rows, Rows]:
    """The quartiles of each row's cell, with linear interpolation.

    Args:
      values: metrics.
      cell: label of the data set and task.
      where: the rows that count.
    """
    return tuple(group_quantile(values, cell, share, where) for share in (0.25, 0.5, 0.75))


def logistic_of_quartiles(
    values: Rows, low: Rows, middle: Rows, high: Rows, slope: float, least: float
) -> Rows:
    """1 / (1 + exp(-k (x - p50) / max(p75 - p25, δ))): ½ at the median.

    Args:
      values: x.
      low, middle, high: p25, p50, p75.
      slope: k.
      least: δ; quartiles that fall together would make a step of the curve.
    """
    spread = jnp.maximum(high - low, least)
    return jax.nn.sigmoid(slope * (values - middle) / spread)


@part
def by_start_quartiles(
    column: int, cells: Count = 1, slope: Positive = 3.0, least: Positive = 0.05
) -> Shaping:
    """A metric by the quartiles that its data set had when it was first seen; they stay.

    They are those of the first batch in which a cell occurs, so of the policy the run began with if
    every batch has all cells.

    Args:
      column: of the task's rewards, the metric.
      cells: C, how many labels `Rollouts.cell` has; rows without one are of the first.
      slope: k.
      least: δ, of the distance of the quartiles.
    Reads: component_rewards, cell. Metrics: reward/metric (as it is), reward/median (of the rows'
      cells).
    Raises:
      ValueError: no cells, or a number that is not positive.
    Source: MedGRPO.
    """

    def init(prompts):
        del prompts
        return QuartileState(np.zeros((cells, 3), np.float32), np.zeros(cells, bool))

    def apply(rollouts, state, moment):
        del moment
        values = rollouts.component_rewards[:, column]
        given = jnp.zeros_like(rollouts.group) if rollouts.cell is None else rollouts.cell
        cell = jnp.clip(given, 0, cells - 1)
        counted = judged_rows(rollouts) & ~jnp.isnan(values)
        found = cell_quartiles(jnp.where(counted, values, 0), cell, counted)
        state = _first_seen(state, np.asarray(cell), np.asarray(counted), found)
        low, middle, high = jnp.asarray(state.quartiles, values.dtype)[cell].T
        metrics = {
            "reward/metric": judged_mean(values, rollouts),
            "reward/median": judged_mean(middle, rollouts),
        }
        reward = logistic_of_quartiles(values, low, middle, high, slope, least)
        return reward, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, init, reads, column + 1)


def _first_seen(state, cell, counted, found):
    """The state with the quartiles of cells that were not known."""
    quartiles, known = state.quartiles.copy(), state.known.copy()
    columns = np.stack([np.asarray(values) for values in found], axis=1)
    for number in np.unique(cell[counted]):
        if not known[number]:
            quartiles[number] = columns[np.flatnonzero((cell == number) & counted)[0]]
            known[number] = True
    return QuartileState(quartiles, known)
