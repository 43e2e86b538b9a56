"""Rows that a teacher can say something about, because another row of their group is right."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from rlvr_jax.objectives.statistics.groups import group_sum
from rlvr_jax.types import Rollouts

__all__ = ["has_right_sibling"]


def has_right_sibling(rollouts: Rollouts, success: float = 0.5) -> Bool[Array, "B"]:
    """Rows of whose group another row has an outcome of at least `success`."""
    right = (rollouts.outcome >= success).astype(jnp.int32)
    return group_sum(right, rollouts.group) > right
