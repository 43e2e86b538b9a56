"""Advantages by the label of a row, for batches of several roles."""

from collections.abc import Mapping

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.inputs import measured
from rlvr_jax.objectives.algebra.parts import Transform, no_state
from rlvr_jax.types import part, replace


@part(writes={"advantage"})
def advantage_by_cell(table: Mapping[int, Transform], other: Transform) -> Transform:
    """Estimates the advantage of each row by the estimator of the row's cell (its label).

    An estimator sees only the tokens of its rows.

    Args:
      table: estimators without state, by cell.
      other: estimator of the rows of all other cells.
    Metrics: those of the estimators.
    Raises:
      ValueError: an estimator has state.
    """
    parts = {**table, None: other}
    for one in parts.values():
        if one.init is not no_state:
            raise ValueError(
                f"advantage_by_cell: estimators must be without state, got {one.label}"
            )

    def apply(signals, context, state):
        cell = context.rollouts.records["cell"]
        chosen = {number: cell == number for number in table}
        rest = jnp.ones(cell.shape, bool)
        for rows in chosen.values():
            rest &= ~rows
        chosen[None] = rest
        total, found = jnp.zeros_like(signals.advantage), {}
        for number, one in parts.items():
            mask = signals.mask & chosen[number][:, None]
            own = replace(signals, mask=mask)
            rollouts = context.rollouts.replace(mask=mask)
            own, _, metrics = one.apply(own, replace(context, rollouts=rollouts), ())
            total = jnp.where(mask, own.advantage, total)
            found |= metrics
        return replace(signals, advantage=total), state, found

    reads = frozenset().union(*(one.reads for one in parts.values()))
    return Transform(apply, reads=reads | {"cell"}, once=not measured(reads))
