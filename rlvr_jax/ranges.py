"""Ranges of numbers, and annotated types that carry one.

    def keep_top_entropy(fraction: Share) -> Transform: ...

This module does not import JAX. `types.hyperparameters` and settings of tasks use its types.
"""

import math
import operator
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; an open end is excluded. NaN is in no range.

    Fields:
      finite: infinity is excluded. Only a bound that may be absent allows it.
      fix: what to give instead of a value outside, a phrase.
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    finite: bool = True
    fix: str = ""

    def __contains__(self, value: Any) -> bool:
        above = self.low < value if self.open_low else self.low <= value
        below = value < self.high if self.open_high else value <= self.high
        return bool(above and below) and (math.isfinite(value) or not self.finite)

    def __str__(self) -> str:
        if self.low == -math.inf and self.high == math.inf:
            return "finite"
        if self.high == math.inf:
            if self.open_low:
                return "positive" if self.low == 0 else f"above {self.low:g}"
            return f"at least {self.low:g}"
        if self.low == -math.inf:
            return f"below {self.high:g}" if self.open_high else f"at most {self.high:g}"
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"in {left}{self.low:g}, {self.high:g}{right}"


Finite = Annotated[float, Range()]
Positive = Annotated[float, Range(0, open_low=True)]
NonNegative = Annotated[float, Range(0)]
AtLeastOne = Annotated[float, Range(1, finite=False)]
Bound = Annotated[float, Range(0, open_low=True, finite=False)]
"""A positive bound; infinity: no bound."""
Share = Annotated[float, Range(0, 1, open_low=True)]
Unit = Annotated[float, Range(0, 1)]
OpenUnit = Annotated[float, Range(0, 1, open_low=True, open_high=True)]
Count = Annotated[int, Range(1)]
AtLeastTwo = Annotated[int, Range(2)]
NonNegativeInt = Annotated[int, Range(0)]


def is_whole(value: Any) -> bool:
    """Whether a value is an integer; a bool is not."""
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True
