"""Types of hyperparameters: each one carries its range and its description.

    def keep_top_entropy(fraction: Share) -> Transform: ...

`part` and `recipe` check arguments against the types of their parameters and report the first one
that is out of range. The method's page and `python -m rlvr_jax.methods NAME` print range and
description.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; an open end is excluded. NaN is in no range.

    Fields:
      finite: infinity is excluded. Only a bound that may be absent allows it.
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    finite: bool = True

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
NonNegativeInt = Annotated[int, Range(0)]

HalfWidth = Annotated[float, Range(0, finite=False)]
ClipLow = Annotated[HalfWidth, "half-width of the trust region below a ratio of 1 (ε_low)"]
ClipHigh = Annotated[HalfWidth, "half-width of the trust region above a ratio of 1 (ε_high)"]
DualClip = Annotated[
    Annotated[float, Range(1, open_low=True, finite=False)],
    "bound of the loss of a token with negative advantage, in units of -A (c)",
]
Epsilon = Annotated[Positive, "added to a denominator"]
KLCoefficient = Annotated[NonNegative, "weight of the KL divergence (β)"]
EntropyCoefficient = Annotated[Finite, "weight of the entropy"]
Temperature = Annotated[Positive, "sampling temperature"]
Discount = Annotated[Unit, "discount per token (γ)"]
TraceDecay = Annotated[Unit, "decay of generalized advantage estimation (λ)"]

ToolNames = Annotated[
    Sequence[str] | None,
    "tools that may be called, by name; none: no tools; None: the task has an environment",
]
CallStyle = Annotated[str, 'how tools are called: "json", "tags" or "fenced"']
MaxTurns = Annotated[Count, "replies of a response at most"]
ReplyTokens = Annotated[Count, "tokens of a reply at most"]
DescribeTools = Annotated[bool, "list the tools in a system message, which needs a chat template"]


def is_whole(value: Any) -> bool:
    """Whether a value is an integer; a bool is not."""
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True
