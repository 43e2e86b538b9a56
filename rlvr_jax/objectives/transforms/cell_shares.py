"""Cells that count as wholes, however many tokens each has."""

import jax.numpy as jnp

from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.objectives.statistics.groups import group_sum
from rlvr_jax.objectives.statistics.masked import masked_count, masked_sum
from rlvr_jax.types import replace
from rlvr_jax.types.parts import part

__all__ = ["cells_alike"]


@part(reads={"cell", "batch_statistics"}, writes={"weight"})
def cells_alike() -> Transform:
    """w'_t = w_t N / N_c: under `token_mean` the loss is the sum of the means of the cells.

    N is the number of tokens of all rows, N_c that of the rows with the same `cell`. A row without
    tokens counts nothing.

    Reads: cell, mask. Writes: weight. Metrics: none.
    """

    def apply(signals, context, state):
        count = masked_sum(jnp.ones_like(signals.weight), signals.mask, axis=1)
        own = group_sum(count, context.rollouts.cell)
        whole = masked_count(signals.mask).astype(count.dtype)
        factor = jnp.where(own > 0, whole / jnp.maximum(own, 1), 0)
        return replace(signals, weight=signals.weight * factor[:, None]), state, {}

    return apply
