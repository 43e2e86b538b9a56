"""Prompts of two splits: from a generator and a seed, or members that are all known, parted."""

import dataclasses
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import numpy as np

from rlvr_jax.tasks.base import Prompt

__all__ = ["SIZE", "TEST_SIZE", "held_apart", "splits"]

SIZE = 1000
TEST_SIZE = 100
# Draws for one more prompt before a generator counts as exhausted.
_DRAWS = 200

Class = TypeVar("Class")


def splits(
    name: str,
    draw: Callable[[Random, Class], tuple[str, Prompt]],
    classes: Sequence[Class],
    size: int,
    test_size: int,
    seed: int,
    worked: bool = True,
) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """Draws the train and the test prompts; none is in both or twice in one.

    A gold response is also the worked solution of a prompt that has no other, so that methods which
    show or imitate solutions can train on it. The test split does not depend on `size`, and a
    smaller train split is how a larger one begins.

    Args:
      name: of the task, for errors and for the seed.
      draw: (generator of random numbers, class) -> what makes it the same prompt, and the prompt.
      classes: such as levels; prompt i is of class i modulo their number.
      size, test_size: prompts of the two splits.
      seed: of all of them.
      worked: gold responses are worth imitating.
    Raises:
      ValueError: a size below 1; more prompts wanted than the generator finds.
    """
    for argument, value in (("size", size), ("test_size", test_size)):
        if value < 1:
            raise ValueError(f"{name}: {argument} must be at least 1, got {value}")
    taken: set[str] = set()

    def split(part: str, count: int) -> tuple[Prompt, ...]:
        random = Random(f"{name} {part} {seed}")
        prompts = []
        for index in range(count):
            for _ in range(_DRAWS):
                key, prompt = draw(random, classes[index % len(classes)])
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


def held_apart(name: str, members: Sequence[Class], held_out: str) -> dict[str, list[Class]]:
    """What is trained on and what is held out: the members are shuffled, always alike, and split
    6:1:1 into "train", "dev" and "test"; within a split they keep their order.

    Args:
      name: of the task, for errors.
      held_out: "test", or "dev" for choosing settings.
    Returns:
      The members of "train" and of `held_out`.
    Raises:
      ValueError: unknown split.
    """
    if held_out not in ("dev", "test"):
        raise ValueError(f"{name}: held_out must be 'dev' or 'test', got {held_out!r}")
    order = np.random.default_rng(0).permutation(len(members))
    first, second = len(members) * 6 // 8, len(members) * 7 // 8
    parts = {"train": order[:first], "dev": order[first:second], "test": order[second:]}
    return {part: [members[index] for index in sorted(parts[part])] for part in ("train", held_out)}
