"""Prompts of two splits: from a generator and a seed, or from a known set of members."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

import numpy as np

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.settings import ResponseTokens, Seed, Size, TestSize, task

__all__ = ["SIZE", "TEST_SIZE", "Generated", "generated", "held_apart", "splits"]

SIZE = 1000
TEST_SIZE = 100
# Attempts for one more prompt before a generator counts as exhausted.
_DRAWS = 200
_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD

Class = TypeVar("Class")
Draw = Callable[[Random, Any], Prompt | tuple[str, Prompt]]
"""(random numbers, class) -> a prompt, with a key if prompts of other texts count as equal."""


class Generated:
    """The function that makes the prompts of a task, and further fields of the task.

    Args:
      draw, classes, worked: as in `splits`.
      name: name of the task; empty: the name of its function.
      seeded: text that is mixed with the seed; empty: the name of the task.
      fields: further fields of `Task`.
    """

    def __init__(
        self,
        draw: Draw,
        classes: Sequence[Any],
        *,
        worked: bool = True,
        name: str = "",
        seeded: str = "",
        **fields: Any,
    ):
        self.draw: Draw = draw
        self.classes: Sequence[Any] = classes
        self.worked: bool = worked
        self.name: str = name
        self.seeded: str = seeded
        self.fields: dict[str, Any] = fields


def generated(
    response_tokens: int = 256, size: int = SIZE, test_size: int = TEST_SIZE
) -> Callable[[Callable[..., Generated]], Callable[..., Task]]:
    """Makes tasks from a function that returns `Generated`; see `settings.task`.

    size, test_size, seed and response_tokens are settings of the task. The function gets those that
    it has as arguments.

    Args:
      response_tokens, size, test_size: defaults of these settings.
    """
    shared = [
        inspect.Parameter(name, _NAMED, default=default, annotation=annotation)
        for name, default, annotation in (
            ("size", size, Size),
            ("test_size", test_size, TestSize),
            ("seed", 0, Seed),
            ("response_tokens", response_tokens, ResponseTokens),
        )
    ]

    def decorate(maker: Callable[..., Generated]) -> Callable[..., Task]:
        taken = inspect.signature(maker, eval_str=True).parameters
        known = {parameter.name for parameter in shared}
        parameters = [p for name, p in taken.items() if name not in known] + shared

        @functools.wraps(maker)
        def make(*values: Any) -> Task:
            settings = dict(zip((p.name for p in parameters), values, strict=True))
            found = maker(**{name: settings[name] for name in taken})
            name, (size, tests, seed, budget) = found.name or maker.__name__, values[-len(shared) :]
            seeded = found.seeded or name
            train, test = splits(
                seeded, found.draw, found.classes, size, tests, seed, worked=found.worked
            )
            return Task(name, train, test, response_tokens=budget, **found.fields)

        make.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        make.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return task(make)

    return decorate


def splits(
    name: str,
    draw: Draw,
    classes: Sequence[Any],
    size: int,
    test_size: int,
    seed: int,
    *,
    worked: bool = True,
) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """The train and the test prompts; none is in both or twice in one.

    A gold response is also the worked solution of a prompt without another one, so that methods
    with solutions can train on it. The test split does not depend on `size`. A smaller train split
    is the beginning of a larger one.

    Args:
      name: name of the task, for errors and for the seed.
      draw: (random, class) -> prompt.
      classes: for example levels; prompt i is of class i modulo their number.
      size, test_size: number of prompts of the two splits.
      seed: seed of all prompts.
      worked: gold responses are worth imitating.
    Raises:
      ValueError: the generator finds fewer different prompts than requested.
    """
    taken: set[str] = set()

    def split(part: str, count: int) -> tuple[Prompt, ...]:
        random = Random(f"{name} {part} {seed}")
        prompts = []
        for index in range(count):
            for _ in range(_DRAWS):
                found = draw(random, classes[index % len(classes)])
                key, prompt = (found.text, found) if isinstance(found, Prompt) else found
                if key not in taken:
                    break
            else:
                raise ValueError(
                    f"{name}: size and test_size must be small enough for different prompts, got"
                    f" {size} and {test_size}, and {len(taken)} were found"
                )
            taken.add(key)
            if worked and prompt.gold and not prompt.solution:
                prompt = dataclasses.replace(prompt, solution=(prompt.gold,))
            prompts.append(prompt)
        return tuple(prompts)

    test = split("test", test_size)
    return split("train", size), test


def held_apart(members: Sequence[Class], held_out: str) -> list[list[Class]]:
    """The training and the held-out members, split 6:1:1 into "train", "dev" and "test". They are
    always shuffled alike; within a split they have their original order.

    Returns:
      The members of "train" and of `held_out`, "dev" or "test".
    """
    order = np.random.default_rng(0).permutation(len(members))
    first, second = len(members) * 6 // 8, len(members) * 7 // 8
    parts = {"train": order[:first], "dev": order[first:second], "test": order[second:]}
    return [[members[index] for index in sorted(parts[part])] for part in ("train", held_out)]
