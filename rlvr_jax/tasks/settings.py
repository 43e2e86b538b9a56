"""Settings of tasks: annotated types with range and description, and their checks.

    @task
    def operators(seed: SplitSeed = 0, response_tokens: ResponseTokens = 20) -> Task: ...

`python -m rlvr_jax.tasks operators` prints the settings with description and range.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

from rlvr_jax.arguments import bound_arguments, choices_of, words_of
from rlvr_jax.ranges import Count, NonNegativeInt, OpenUnit
from rlvr_jax.tasks.base import Task

__all__ = ["AnswerAfter", "DropContradictions", "HeldOut", "HeldOutFraction", "Instruction"]
__all__ += ["ResponseTokens", "Seed", "Size", "SplitSeed", "TestSize"]
__all__ += ["checked", "described", "task"]

Size = Annotated[Count, "train prompts"]
TestSize = Annotated[Count, "test prompts"]
Seed = Annotated[int, "seed of the prompts"]
SplitSeed = Annotated[NonNegativeInt, "seed of the split"]
ResponseTokens = Annotated[Count, "largest number of tokens of a response"]
HeldOut = Annotated[Literal["test", "dev"], "test prompts; dev: prompts for the choice of settings"]
AnswerAfter = Annotated[str | None, "mark before the answer; None: ####, a box or the whole cell"]
HeldOutFraction = Annotated[OpenUnit, "fraction of the questions in test, by a hash of their words"]
Instruction = Annotated[
    str, "text added to a question; a request for a box only if it names no form of answer"
]
DropContradictions = Annotated[
    bool, "drop questions that occur with different answers, instead of an error"
]


def described(parameter: inspect.Parameter) -> str:
    """Name, default, description, range and choices of a setting."""
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    choices = " or ".join(map(repr, choices_of(parameter.annotation)))
    words = ", ".join(filter(None, [words_of(parameter.annotation), choices]))
    return f"{parameter.name}{default}{words and ': '}{words}"


def task(maker: Callable[..., Task]) -> Callable[..., Task]:
    """Makes a task once for each choice of settings; see `checked`."""
    return functools.cache(checked(maker))


def checked(maker: Callable[..., Task]) -> Callable[..., Task]:
    """Checks settings against their annotations, and that min_x is at most max_x.

    Raises:
      ValueError: when called, a setting has another type or is out of its range.
    """

    @functools.wraps(maker)
    def make(*given: Any, **named: Any) -> Task:
        bound = bound_arguments(maker, given, named)
        settings = bound.arguments
        for low in settings:
            high = low.replace("min_", "max_", 1)
            if low.startswith("min_") and settings[low] > settings[high]:
                raise ValueError(
                    f"{maker.__name__}: {low} must be at most {high} {settings[high]}, got"
                    f" {settings[low]}"
                )
        return maker(*bound.args, **bound.kwargs)

    return make
