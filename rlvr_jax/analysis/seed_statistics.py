"""Means over seeds with t-intervals, paired differences, and values at an equal level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

LEVEL_ROUNDING = 1e-9  # a mean of fractions that is so close to a level is at it
_ROUNDING = 1e-12  # float64 differences of numbers of order 1, or of values that are larger


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with the half-width of its t-interval.

    Fields:
      mean: of the values; NaN if there are none.
      half_width: of the interval of the mean; NaN with fewer than two values, 0 up to rounding if
        they are equal.
      values: one per seed, in the order given.
    """

    mean: float
    half_width: float
    values: tuple[float, ...]

    @property
    def exists(self) -> bool:
        """Whether there is an interval: two values or more that differ by more than rounding."""
        return self.half_width > _ROUNDING * max([1.0, *map(abs, self.values)])

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside the interval; False where there is no interval."""
        return self.exists and abs(self.mean) > self.half_width

    @property
    def signed(self) -> str:
        """For a difference: "+0.024 ± 0.019"."""
        return str(self) if self.mean < 0 or not self.values else f"+{self}"

    def __str__(self) -> str:
        if not self.values:
            return "–"
        if not self.exists:
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} ± {self.half_width:.3f}"


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean ± t(n - 1) · s / √n, a 95 % interval, with s the standard deviation (n - 1).

    Args:
      values: one per seed (or one difference per pair); NaN where a seed has none, left out.
    """
    finite = np.array([v for v in values if np.isfinite(v)], float)
    mean = float(finite.mean()) if finite.size else float("nan")
    half_width = float("nan")
    if finite.size > 1:
        quantile = special.stdtrit(finite.size - 1, 0.975)
        half_width = float(quantile * finite.std(ddof=1) / np.sqrt(finite.size))
    return Interval(mean, half_width, tuple(finite.tolist()))


def value_at(x: ArrayLike, y: ArrayLike, where: float) -> float:
    """Interpolates y linearly at `where`; NaN outside the range of x, which must rise."""
    return float(np.interp(where, x, y, left=np.nan, right=np.nan)) if len(x) else float("nan")


def crossing(x: ArrayLike, y: ArrayLike, level: float) -> float:
    """Gives the first x at which y reaches `level` from below, linear between points.

    NaN if it never does, or if y starts above the level: when it was there is not known. A y within
    1e-9 of the level is at it. Points where y is NaN are left out.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    x, y = x[~np.isnan(y)], y[~np.isnan(y)]
    above = np.flatnonzero(y >= level - LEVEL_ROUNDING)
    if not len(above):
        return float("nan")
    i = above[0]
    if i == 0:
        return float(x[0]) if y[0] <= level + LEVEL_ROUNDING else float("nan")
    fraction = min((level - y[i - 1]) / (y[i] - y[i - 1]), 1.0)
    return float(x[i - 1] + fraction * (x[i] - x[i - 1]))
