"""Factors over the steps of a run, for `over_steps`: functions (step) -> number.

Past its last step a factor stays what it was there.
"""

from __future__ import annotations

import math

from rlvr_jax.types.hyperparameters import Count, NonNegative
from rlvr_jax.types.parts import Function, part

__all__ = ["falling_cosine", "falling_exponential", "rising_cosine"]


@part
def falling_cosine(steps: Count) -> Function:
    """(cos(π s / S) + 1) / 2: from 1 down to 0 at step S, and 0 from there.

    Args:
      steps: S, at least 1.
    Raises:
      ValueError: no whole number of steps, or less than 1.
    """

    def falling_cosine_of_step(step):
        return (math.cos(math.pi * min(step, steps) / steps) + 1) / 2

    return falling_cosine_of_step


@part
def rising_cosine(steps: Count) -> Function:
    """(1 - cos(π s / S)) / 2: from 0 up to 1 at step S, and 1 from there; as `falling_cosine`."""
    falling = falling_cosine(steps)

    def rising_cosine_of_step(step):
        return 1 - falling(step)

    return rising_cosine_of_step


@part
def falling_exponential(rate: NonNegative, steps: Count) -> Function:
    """exp(-k s / S), s at most S.

    Args:
      rate: k, at least 0.
      steps: S, at least 1.
    Raises:
      ValueError: a negative rate; no whole number of steps, or less than 1.
    """

    def falling_exponential_of_step(step):
        return math.exp(-rate * min(step, steps) / steps)

    return falling_exponential_of_step
