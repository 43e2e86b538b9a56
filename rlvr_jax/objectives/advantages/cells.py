"""Statistics by cell: rows with one label (a role, an expert, a domain) among themselves.

`Rollouts.cell` is the label; rows without one (-1) are a cell, too.
"""

from collections.abc import Mapping

import jax.numpy as jnp

from rlvr_jax.types.hyperparameters import Finite
from rlvr_jax.types.parts import Function, part

__all__ = ["scale_of_cell"]


@part
def scale_of_cell(factors: Mapping[int, Finite], other: Finite = 1.0) -> Function:
    """A factor by the label of the row, for the argument `weight` of `kl_penalty`, with
    `reads={"cell"}`.

    Args:
      factors: by cell, finite.
      other: of all other rows.
    """

    def weight(signals, context):
        cell = context.rollouts.cell
        scale = jnp.full(cell.shape, other, signals.weight.dtype)
        for number, factor in factors.items():
            scale = jnp.where(cell == number, jnp.asarray(factor, scale.dtype), scale)
        return scale[:, None]

    return weight
