"""Inputs of a problem over all scales, from a generator and a validator."""

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TypeVar

__all__ = ["SCALES", "make_inputs"]

Input = TypeVar("Input", bound=Hashable)
SCALES = (1, 10, 100, 1_000, 10_000, 100_000)
"""Decades; a draw has a scale from one of these to ten times it, at most the last."""
DRAWS = 20
"""Tries for each input that is wanted, before there are too few."""


def make_inputs(
    generate: Callable[[int, Random], Input],
    valid: Callable[[Input], bool],
    number: int,
    seed: int,
    scales: Sequence[int] = SCALES,
    corrupted: Sequence[Input] = (),
) -> list[Input]:
    """Different valid inputs, decade after decade of the scale.

    Args:
      generate: (scale, random numbers) -> an input.
      valid: (input) -> whether the problem allows it.
      number: of inputs.
      seed: of all of them.
      scales: decades, rising.
      corrupted: inputs that the problem does not allow; one that accepts all of them is no test.
    Raises:
      ValueError: a validator that accepts everything; fewer valid inputs than wanted.
    Source: rStar-Coder; the seed and the trial of the validator are ours.
    """
    if corrupted and all(valid(value) for value in corrupted):
        raise ValueError(
            f"make_inputs: valid must refuse some of the corrupted inputs, accepted all"
            f" {len(corrupted)}"
        )
    random, found = Random(f"make_inputs {seed}"), {}
    for draw in range(DRAWS * number):
        place = draw % len(scales)
        top = scales[place + 1] if place + 1 < len(scales) else scales[place]
        value = generate(random.randint(scales[place], max(scales[place], top - 1)), random)
        if value not in found and valid(value):
            found[value] = None
        if len(found) == number:
            return list(found)
    raise ValueError(
        f"make_inputs: number must be at most what the generator gives, got {number}, found"
        f" {len(found)}"
    )
