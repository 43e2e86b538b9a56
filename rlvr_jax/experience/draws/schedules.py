"""Constants of processors that move from step to step."""

from __future__ import annotations

import numpy as np

from rlvr_jax.types.hyperparameters import NonNegative, Positive
from rlvr_jax.types.parts import Function, part

__all__ = ["growing_horizon"]


@part
def growing_horizon(start: Positive, growth: NonNegative, most: Positive) -> Function:
    """Gives `annealed` a horizon that grows with the steps: L_s = min(start + growth · s, most).

    Args:
      start: tokens, in step 0.
      growth: tokens a step.
      most: tokens.
    Raises:
      ValueError: a horizon that is not positive, or one that shrinks.
    """

    def constants(turn):
        return {"horizon": np.float32(min(start + growth * turn.step, most))}

    return constants
