"""Countdown: reach a number with + - * / and each of some numbers once."""

import functools
from random import Random

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE, splits
from rlvr_jax.verifiers.checks import Check
from rlvr_jax.verifiers.puzzles.countdown import generate

_MODULE = "rlvr_jax.verifiers.puzzles.countdown"
# More numbers make an expression longer than the check reads.
_MOST_NUMBERS = 12


@functools.cache
def countdown(
    min_numbers: int = 3,
    max_numbers: int = 5,
    max_value: int = 50,
    max_target: int = 200,
    size: int = SIZE,
    test_size: int = TEST_SIZE,
    seed: int = 0,
    response_tokens: int = 128,
) -> Task:
    """Every prompt can be solved; `meta["level"]` is how many numbers there are, less 1.

    Args:
      min_numbers, max_numbers: how many numbers there are; as many prompts of each.
      max_value: numbers are from 1 to this one.
      max_target: and so are the targets.
      size, test_size: prompts of the two splits.
      seed: of the prompts.
      response_tokens: budget of a response.
    Raises:
      ValueError: an empty range, more than 12 numbers, fewer different prompts than wanted.
    """
    if not 2 <= min_numbers <= max_numbers <= _MOST_NUMBERS:
        raise ValueError(
            f"countdown: min_numbers and max_numbers must be in 2 .. {_MOST_NUMBERS} and in order,"
            f" got {min_numbers} and {max_numbers}"
        )
    for argument, value in (("max_value", max_value), ("max_target", max_target)):
        if value < 2:
            raise ValueError(f"countdown: {argument} must be at least 2, got {value}")

    def draw(random: Random, count: int) -> tuple[str, Prompt]:
        instance = generate(random, count, max_value, max_target)
        listed = ", ".join(map(str, instance.numbers))
        text = (
            f"Make {instance.target} of the numbers {listed}: write an expression with + - * / and"
            " brackets that uses each number once. Give it between <answer> and </answer>."
        )
        prompt = Prompt(
            text=text,
            answer={"numbers": instance.numbers, "target": instance.target},
            kind=f"{count}_numbers",
            gold=f"<answer>{instance.solution}</answer>",
            meta={"level": count - 1},
        )
        return f"{instance.target} {sorted(instance.numbers)}", prompt

    counts = range(min_numbers, max_numbers + 1)
    train, test = splits("countdown", draw, counts, size, test_size, seed)
    return Task(
        name="countdown",
        train=train,
        test=test,
        verify=verifier(
            Check(f"{_MODULE}:check", f"{_MODULE}:extract"), workers=0, tags=("think", "answer")
        ),
        response_tokens=response_tokens,
        answers=True,
        derived=("meta",),
    )
