"""Types of hyperparameters: each one carries its range and its description.

    def keep_top_entropy(fraction: Share) -> Transform: ...

`part` and `recipe` check arguments against the types of their parameters and report the first one
that is out of range. The method's page and `python -m rlvr_jax.methods NAME` print range and
description.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from rlvr_jax.ranges import (
    AtLeastOne as AtLeastOne,
    AtLeastTwo as AtLeastTwo,
    Bound as Bound,
    Count as Count,
    Finite as Finite,
    NonNegative as NonNegative,
    NonNegativeInt as NonNegativeInt,
    OpenUnit as OpenUnit,
    Positive as Positive,
    Range as Range,
    Share as Share,
    Unit as Unit,
)


@dataclass(frozen=True)
class OfRun:
    """Annotation of a hyperparameter that takes a value of the run, unless it is given.

    Fields:
      setting: of the run; "updates": optimizer updates of a step. "environment": None if the task
        has an environment; else the default of the method.
      divisor: the value is the setting's divided by it, at least 1.
    """

    setting: Literal["response_tokens", "steps", "updates", "learning_rate", "environment"]
    divisor: int = 1


HalfWidth = Annotated[float, Range(0, finite=False)]
ClipLow = Annotated[HalfWidth, "half-width of the trust region below a ratio of 1 (ε_low)"]
ClipHigh = Annotated[HalfWidth, "half-width of the trust region above a ratio of 1 (ε_high)"]
DualClip = Annotated[
    Annotated[float, Range(1, open_low=True, finite=False)],
    "bound of the loss of a token with negative advantage, in units of -A (c)",
]
Epsilon = Annotated[Positive, "added to a denominator"]
MaxLength = Annotated[Count, "budget of response tokens (L)", OfRun("response_tokens")]
CacheLength = Annotated[
    Count,
    "last tokens of the budget, over which the length penalty grows (L_cache)",
    OfRun("response_tokens", 5),
]
TotalSteps = Annotated[Count, "number of steps of the run", OfRun("steps")]
StepUpdates = Annotated[Count, "number of optimizer updates of a step", OfRun("updates")]
LearningRate = Annotated[Positive, "learning rate of the optimizer (η)", OfRun("learning_rate")]
OverlongFactor = Annotated[
    NonNegative, "length penalty of a response that uses the full budget (f)"
]
MaxRounds = Annotated[Count, "maximum number of batches that are sampled to fill one update"]
KLCoefficient = Annotated[NonNegative, "weight of the KL divergence (β)"]
EntropyCoefficient = Annotated[Finite, "weight of the entropy"]
Temperature = Annotated[Positive, "sampling temperature"]
Discount = Annotated[Unit, "discount per token (γ)"]
ValueClip = Annotated[Bound, "half-width of the critic's trust region"]
TraceDecay = Annotated[Unit, "decay of generalized advantage estimation (λ)"]

ToolNames = Annotated[
    Sequence[str] | None,
    "tools that may be called, by name; none: no tools; None: the environment of the task",
    OfRun("environment"),
]
CallStyle = Annotated[str, 'how tools are called: "json", "tags" or "fenced"']
MaxTurns = Annotated[Count, "maximum number of replies in a response"]
ReplyTokens = Annotated[Count, "maximum number of tokens of a reply"]
DescribeTools = Annotated[bool, "list the tools in a system message, which needs a chat template"]
