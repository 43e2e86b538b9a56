"""Constants of processors that move from step to step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlvr_jax.experience.parts import Turn
from rlvr_jax.objectives import describe
from rlvr_jax.objectives.arguments import check_at_least, check_positive

__all__ = ["growing_horizon"]


def growing_horizon(
    start: float, growth: float, most: float
) -> Callable[[Turn], dict[str, np.ndarray]]:
    """Gives `annealed` a horizon that grows with the steps: L_s = min(start + growth · s, most).

    Args:
      start: tokens, in step 0.
      growth: tokens a step.
      most: tokens.
    Raises:
      ValueError: a horizon that is not positive, or one that shrinks.
    """
    check_positive("growing_horizon", start=start, most=most)
    check_at_least(0, "growing_horizon", growth=growth)

    def constants(turn):
        return {"horizon": np.float32(min(start + growth * turn.step, most))}

    constants.__name__ = describe(
        "growing_horizon", start=float(start), growth=float(growth), most=float(most)
    )
    return constants
