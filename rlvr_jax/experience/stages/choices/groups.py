"""Tests of groups by their outcomes: (outcomes [G, N], NaN without a verdict) -> bool [G]."""

import numpy as np

from rlvr_jax.types.parts import Function, part

__all__ = ["all_wrong", "outside", "uniform"]

ALIKE = 1e-6
"""Outcomes closer than this count as equal: sums that differ by rounding are no signal."""


def all_wrong(outcomes: np.ndarray) -> np.ndarray:
    """Groups with verdicts, of which none is above 0."""
    known = ~np.isnan(outcomes)
    return known.any(axis=1) & ~(np.nan_to_num(outcomes) > 0).any(axis=1)


def uniform(outcomes: np.ndarray) -> np.ndarray:
    """Groups whose outcomes are all equal, and those without a verdict; but not groups of one.

    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476 (dynamic sampling).
    """
    known = ~np.isnan(outcomes)
    number = known.sum(axis=1)
    highest = np.max(np.where(known, outcomes, -np.inf), axis=1, initial=-np.inf)
    lowest = np.min(np.where(known, outcomes, np.inf), axis=1, initial=np.inf)
    return (number == 0) | ((number > 1) & (highest - lowest <= ALIKE))


@part
def outside(low: float, high: float) -> Function:
    """Groups whose mean outcome is not strictly between two bounds, and those without a verdict.

    Args:
      low, high: the bounds, low below high.
    Raises:
      ValueError: low not below high.
    """
    if not low < high:
        raise ValueError(f"outside: low must be below high, got {low:g} and {high:g}")

    def test(outcomes: np.ndarray) -> np.ndarray:
        number = (~np.isnan(outcomes)).sum(axis=1)
        mean = np.nansum(outcomes, axis=1) / np.maximum(number, 1)
        return (number == 0) | ~((low < mean) & (mean < high))

    return test
