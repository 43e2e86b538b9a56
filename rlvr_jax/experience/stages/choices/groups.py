"""Tests of groups by their outcomes: (outcomes [G, N], NaN if ungraded) -> bool [G]."""

import numpy as np

from rlvr_jax.types.parts import Function, part

__all__ = ["all_incorrect", "outside", "pass_rates", "uniform"]

ALIKE = 1e-6
"""Outcomes with a smaller difference are equal: differences by rounding are not a signal."""


def pass_rates(outcomes: np.ndarray) -> np.ndarray:
    """Mean outcome of each group, [G]; 0 if all are ungraded."""
    known = ~np.isnan(outcomes)
    return np.nansum(outcomes, axis=1) / np.maximum(known.sum(axis=1), 1)


def all_incorrect(outcomes: np.ndarray) -> np.ndarray:
    """Groups with graded responses, none of which is above 0.

    Examples:
      >>> import numpy as np
      >>> from rlvr_jax.experience import all_incorrect
      >>> all_incorrect(np.array([[0.0, 0.0], [0.0, 1.0], [np.nan, np.nan]])).tolist()
      [True, False, False]
    """
    known = ~np.isnan(outcomes)
    return known.any(axis=1) & ~(np.nan_to_num(outcomes) > 0).any(axis=1)


def uniform(outcomes: np.ndarray) -> np.ndarray:
    """Groups whose outcomes are all equal, and ungraded groups; never groups of one.

    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476 (dynamic sampling).
    """
    known = ~np.isnan(outcomes)
    number = known.sum(axis=1)
    highest = np.max(np.where(known, outcomes, -np.inf), axis=1, initial=-np.inf)
    lowest = np.min(np.where(known, outcomes, np.inf), axis=1, initial=np.inf)
    return (number == 0) | ((number > 1) & (highest - lowest <= ALIKE))


@part
def outside(low: float, high: float) -> Function:
    """Groups whose mean outcome is not strictly between `low` and `high`, and ungraded groups."""
    if not low < high:
        raise ValueError(f"outside: low must be below high, got {low:g} and {high:g}")

    def test(outcomes: np.ndarray) -> np.ndarray:
        rates = pass_rates(outcomes)
        return np.isnan(outcomes).all(axis=1) | ~((low < rates) & (rates < high))

    return test
