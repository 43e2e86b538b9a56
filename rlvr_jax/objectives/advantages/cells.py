"""Statistics by cell: rows with one label (a role, an expert, a domain) among themselves.

`Rollouts.cell` is the label; rows without one (-1) are a cell, too.
"""

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.inputs import MEASURED
from rlvr_jax.objectives.algebra.parts import Transform, no_state
from rlvr_jax.objectives.statistics.groups import (
    group_deviation,
    group_has_tokens,
    group_max,
    group_mean,
    group_std,
    group_sum,
    has_tokens,
)
from rlvr_jax.objectives.statistics.masked import masked_count, masked_sum
from rlvr_jax.types import replace
from rlvr_jax.types.hyperparameters import Finite, Positive
from rlvr_jax.types.parts import Function, part

__all__ = [
    "advantage_by_cell",
    "cell_normalized",
    "groups_by_cell",
    "scale_of_cell",
    "whitened_by_cell",
]


def groups_by_cell(group: Int[Array, "B"], cell: Int[Array, "B"]) -> Int[Array, "B"]:
    """Ids of the groups split by cell: rows of one group and one cell have the same."""
    span = jnp.max(cell) - jnp.min(cell) + 1
    segment = jnp.searchsorted(jnp.sort(group), group).astype(group.dtype)  # any ids, from 0
    return segment * span + (cell - jnp.min(cell))


@part
def cell_normalized(epsilon: Positive = 1e-6, within_groups: bool = False) -> Transform:
    """A_i = (R_i - mean) / (std + ε) over the rows of the same cell; std divides by n - 1.

    Groups without tokens do not count.

    Args:
      epsilon: ε, added to the standard deviation, outside its root.
      within_groups: over the rows of the same group and cell.
    Reads: reward, group, cell. Writes: advantage. Metrics: none.
    Raises:
      ValueError: epsilon not positive.
    """

    def advantage(rollouts):
        reward, group, cell = rollouts.reward, rollouts.group, rollouts.cell
        ids = groups_by_cell(group, cell) if within_groups else cell
        counted = group_has_tokens(rollouts.mask, group)
        scale = group_std(reward, ids, where=counted) + epsilon
        return group_deviation(reward, ids, where=counted) / scale

    return rollout_advantage(advantage, reads={"cell"})


@part(writes={"advantage"})
def whitened_by_cell(
    estimator: Transform, ddof: int = 0, epsilon: float = 0.0, floor: float = 1e-8
) -> Transform:
    """A'_t = (A_t - mean) / sqrt(max(var + ε, floor)) over the tokens of the same cell.

    `whitened` with a mean and a variance for each cell.

    Args:
      estimator, ddof, epsilon, floor: as of `whitened`.
    Reads: what the estimator reads, mask, cell. Writes: advantage. Metrics: the estimator's.
    Raises:
      ValueError: epsilon and floor are both not positive.
    """
    if not (epsilon > 0 or floor > 0):
        raise ValueError(
            f"whitened_by_cell: epsilon or floor must be positive, got {epsilon} and {floor}"
        )

    def apply(signals, context, state):
        signals, state, metrics = estimator.apply(signals, context, state)
        scaled = _whitened(
            signals.advantage, signals.mask, context.rollouts.cell, ddof, epsilon, floor
        )
        return replace(signals, advantage=scaled), state, metrics

    reads = estimator.reads | ({"batch_statistics"} if "logp" in estimator.reads else set())
    return Transform(
        apply,
        init=estimator.init,
        reads=reads | {"cell"},
        remark=estimator.remark,
        options=estimator.options,
        once=estimator.once or not estimator.reads & MEASURED,
    )


def _whitened(
    values: Float[Array, "B T"],
    mask: Bool[Array, "B T"],
    cell: Int[Array, "B"],
    ddof: int,
    epsilon: float,
    floor: float,
) -> Float[Array, "B T"]:
    there = has_tokens(mask)
    count = masked_count(mask, axis=1).astype(values.dtype)
    rows = masked_sum(values, mask, axis=1) / jnp.maximum(count, 1)
    centered = values - group_mean(rows, cell, there, weights=count)[:, None]
    squares = group_sum(masked_sum(centered**2, mask, axis=1), cell, there)
    variance = squares / jnp.maximum(group_sum(count, cell, there) - ddof, 1)
    scaled = centered / jnp.sqrt(jnp.maximum(variance + epsilon, floor))[:, None]
    # The mean of equal numbers may differ from them by rounding.
    lowest = -group_max(-jnp.min(jnp.where(mask, values, jnp.inf), axis=1), cell, there)
    highest = group_max(jnp.max(jnp.where(mask, values, -jnp.inf), axis=1), cell, there)
    return jnp.where(mask & (lowest != highest)[:, None], scaled, 0)


@part
def scale_of_cell(factors: Mapping[int, Finite], other: Finite = 1.0) -> Function:
    """A factor by the label of the row, for the argument `weight` of `kl_penalty`, with
    `reads={"cell"}`.

    Args:
      factors: by cell, finite.
      other: of all other rows.
    Raises:
      ValueError: a factor that is not finite.
    """

    def weight(signals, context):
        cell = context.rollouts.cell
        scale = jnp.full(cell.shape, other, signals.weight.dtype)
        for number, factor in factors.items():
            scale = jnp.where(cell == number, jnp.asarray(factor, scale.dtype), scale)
        return scale[:, None]

    return weight


@part(writes={"advantage"})
def advantage_by_cell(table: Mapping[int, Transform], other: Transform) -> Transform:
    """Estimates the advantage of rows of some cells by estimators of their own.

    An estimator sees the tokens of its rows alone.

    Args:
      table: by cell, estimators without state.
      other: of all other rows.
    Reads: cell, and what the estimators read. Writes: advantage. Metrics: those of the estimators.
    Raises:
      ValueError: an estimator with state.
    """
    parts = {**table, None: other}
    for one in parts.values():
        if one.init is not no_state:
            raise ValueError(
                f"advantage_by_cell: estimators must be without state, got {one.label}"
            )

    def apply(signals, context, state):
        cell = context.rollouts.cell
        chosen = {number: cell == number for number in table}
        rest = jnp.ones(cell.shape, bool)
        for rows in chosen.values():
            rest &= ~rows
        chosen[None] = rest
        total, told = jnp.zeros_like(signals.advantage), {}
        for number, one in parts.items():
            mask = signals.mask & chosen[number][:, None]
            own = replace(signals, mask=mask)
            rollouts = replace(context.rollouts, mask=mask)
            own, _, metrics = one.apply(own, replace(context, rollouts=rollouts), ())
            total = jnp.where(mask, own.advantage, total)
            told |= metrics
        return replace(signals, advantage=total), state, told

    reads = frozenset().union(*(one.reads for one in parts.values()))
    return Transform(apply, reads=reads | {"cell"}, once=not reads & MEASURED)
