"""Lines of a rubric, by which a judge scores responses."""

from dataclasses import dataclass
from typing import Literal

from rlvr_jax.arguments import check_arguments
from rlvr_jax.types.hyperparameters import Positive


@dataclass(frozen=True)
class Criterion:
    """One line of a rubric.

    Fields:
      name: of its curve.
      weight: in a weighted fraction of the points.
      maximum: the largest number of points.
      kind: "factual": a response is correct if all of these are met; "veto": the response gets
        nothing if one of these fails.
      text: the question to a judge.
    """

    name: str
    weight: Positive = 1.0
    maximum: Positive = 1.0
    kind: Literal["plain", "factual", "veto"] = "plain"
    text: str = ""

    def __post_init__(self) -> None:
        check_arguments(Criterion, vars(self))
