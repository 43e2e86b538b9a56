"""Lines of a rubric, by which a judge scores responses."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Criterion:
    """One line of a rubric.

    Fields:
      name: of its curve.
      weight: in a weighted share, positive.
      maximum: the largest number of points, positive.
      kind: "plain", "factual" (all of these make a response right) or "veto" (one that fails takes
        everything).
      text: what a judge is asked.
    Raises:
      ValueError: a weight or maximum that is not positive, or another kind.
    """

    name: str
    weight: float = 1.0
    maximum: float = 1.0
    kind: Literal["plain", "factual", "veto"] = "plain"
    text: str = ""

    def __post_init__(self) -> None:
        for name, value in (("weight", self.weight), ("maximum", self.maximum)):
            if not 0 < value < math.inf:
                raise ValueError(f"Criterion: {name} must be positive, got {value}")
        if self.kind not in ("plain", "factual", "veto"):
            raise ValueError(
                f"Criterion: kind must be 'plain', 'factual' or 'veto', got {self.kind!r}"
            )
