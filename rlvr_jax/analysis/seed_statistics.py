"""Means over seeds with t-intervals, paired differences, and values at an equal level."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

LEVEL_ROUNDING = 1e-9  # a mean of fractions that is closer to a level counts as equal
_ROUNDING = 1e-12  # relative rounding error of float64 differences


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with the half-width of its t-interval.

    Fields:
      mean: mean of the values; NaN without values.
      half_width: half-width of the interval. NaN with fewer than two values; 0 up to rounding if
        all values are equal.
      values: one value per seed, in the given order.
    """

    mean: float
    half_width: float
    values: tuple[float, ...]

    @property
    def exists(self) -> bool:
        """Whether there is an interval: at least two values that differ by more than rounding."""
        return self.half_width > _ROUNDING * max([1.0, *map(abs, self.values)])

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 is outside the interval; False without an interval."""
        return self.exists and abs(self.mean) > self.half_width

    @property
    def signed(self) -> str:
        """A difference as text, for example "+0.024 ± 0.019"."""
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
      values: one value per seed (or one difference per pair). NaN is left out.
    """
    finite = np.array([v for v in values if np.isfinite(v)], float)
    mean = float(finite.mean()) if finite.size else float("nan")
    half_width = float("nan")
    if finite.size > 1:
        quantile = special.stdtrit(finite.size - 1, 0.975)
        half_width = float(quantile * finite.std(ddof=1) / np.sqrt(finite.size))
    return Interval(mean, half_width, tuple(finite.tolist()))


def value_at(x: ArrayLike, y: ArrayLike, where: float) -> float:
    """Linear interpolation of y at `where`; NaN outside the range of x, which must ascend."""
    return float(np.interp(where, x, y, left=np.nan, right=np.nan)) if len(x) else float("nan")


def crossing(x: ArrayLike, y: ArrayLike, level: float) -> float:
    """The first x at which y reaches `level` from below, with linear interpolation.

    NaN if y never reaches the level, or starts above it. A y within 1e-9 of the level has reached
    it. Points with NaN are left out.
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
