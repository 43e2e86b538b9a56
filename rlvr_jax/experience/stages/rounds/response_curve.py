"""How accuracy depends on the length of a hint: a logistic curve, fitted and inverted.

    f(p) = b + (1 - b) / (1 + exp(-k (p + μ)))

p is the share of the solution that is shown, b what is right by chance, k how steep it is, -μ the
middle. f⁻¹(a) = -μ - (1/k) ln((1 - b) / (a - b) - 1).
Source: SEELE (the link stands in the method's card).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

__all__ = ["Curve", "fitted_curve", "next_hint"]

STEEP = 8.0
"""k of a curve of fewer than three different points."""

EDGE = 0.02
"""Accuracies are taken to be so far from 0 and 1 at least, of which no curve has any."""

BOUNDS = (0.1, 100.0), (-3.0, 2.0)
"""Of k and of μ."""


class Curve(NamedTuple):
    """The numbers of a curve, floats or arrays."""

    b: np.ndarray
    k: np.ndarray
    mu: np.ndarray

    def __call__(self, ratio: np.ndarray) -> np.ndarray:
        """Accuracy at a hint of this share."""
        return self.b + (1 - self.b) / (1 + np.exp(-self.k * (ratio + self.mu)))

    def ratio(self, accuracy: float) -> np.ndarray:
        """The share at which the accuracy is reached; accuracy in (b, 1)."""
        return -self.mu - np.log((1 - self.b) / (accuracy - self.b) - 1) / self.k


def fitted_curve(points: Sequence[tuple[float, float]], target: float) -> Curve:
    """The curve nearest to measured points in the sense of least squares.

    Points of one share are averaged. With fewer than three shares only μ is fitted, b = 0 and k =
    8 are taken; else b stays below the target, so that this has a share.

    Args:
      points: (share, accuracy).
      target: accuracy that is wanted.
    """
    shares = np.unique([share for share, _ in points])
    rates = np.array([np.mean([a for p, a in points if p == share]) for share in shares])
    rates = np.clip(rates, EDGE, 1 - EDGE)
    middle = float(np.mean(Curve(0.0, STEEP, 0.0).ratio(rates) - shares))
    (k_low, k_high), (mu_low, mu_high) = BOUNDS
    middle = float(np.clip(middle, mu_low, mu_high))
    if len(shares) < 3:
        found = least_squares(
            lambda x: Curve(0.0, STEEP, x[0])(shares) - rates, [middle], bounds=(mu_low, mu_high)
        )
        return Curve(0.0, STEEP, float(found.x[0]))
    found = least_squares(
        lambda x: Curve(*x)(shares) - rates,
        [min(0.05, target / 2), STEEP, middle],
        bounds=([0.0, k_low, mu_low], [target * (1 - EDGE), k_high, mu_high]),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    return Curve(*map(float, found.x))


def next_hint(points: Sequence[tuple[float, float]], target: float, steps: int) -> float:
    """The share of a solution that should bring the accuracy nearest to the target.

    A multiple of 1 / steps. Where all accuracies are 0, or all are 1, one step more than the
    longest hint so far, or one fewer than the shortest.

    Args:
      points: (share, accuracy) so far, at least one.
      target: in (0, 1).
      steps: of the solution.
    """
    shares, rates = zip(*points, strict=True)
    if max(rates) == 0:
        wanted = max(shares) + 1 / steps
    elif min(rates) == 1:
        wanted = min(shares) - 1 / steps
    else:
        wanted = float(fitted_curve(points, target).ratio(target))
    return round(float(np.clip(wanted, 0, 1)) * steps) / steps
