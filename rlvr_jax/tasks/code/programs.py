"""Programs: write a small Python function that performs some steps in order."""

import itertools
from collections.abc import Sequence
from random import Random
from typing import Annotated, Any, Literal

from rlvr_jax.ranges import Range
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.code.program_steps import KINDS, Step, chain, draw_input, program, value
from rlvr_jax.tasks.generated import Generated, generated

CODE = "rlvr_jax.verifiers.programs.python.code"
_NAME = "solve"
_EMPTY = {"lists": [], "texts": "", "numbers": 0}
_TESTS = 8
_Steps = Annotated[int, Range(1, 6), "numbers of steps of a function, each equally often"]


@generated()
def programs(
    min_steps: _Steps = 1,
    max_steps: _Steps = 3,
    score: Annotated[
        Literal["strict", "fraction"], "the outcome: all eight values are correct, or the fraction"
    ] = "strict",
) -> Generated:
    """Functions on lists, texts and numbers; `meta["level"]` is the number of steps.

    A response is a program in a block fenced as python. It runs in the sandbox with eight inputs.
    The prompt shows one of them, and another one is empty.
    """

    def draw(random: Random, kind_and_steps: tuple[str, int]) -> tuple[str, Prompt]:
        kind, count = kind_and_steps
        steps, inputs = [], []
        while not _telling(steps, inputs):
            steps = chain(random, kind, count)
            inputs = [_EMPTY[kind], *(draw_input(random, kind) for _ in range(_TESTS - 1))]
        source = program(steps, _NAME)
        return source, _prompt(kind, steps, inputs, source)

    counts = range(min_steps, max_steps + 1)
    options = {"score": score, "cpu_seconds": 1.0}
    return Generated(
        draw,
        list(itertools.product(KINDS, counts)),
        verify=verifier_of(CODE, options, workers=0, threads=None),
        derived=("meta",),
    )


def _telling(steps: Sequence[Step], inputs: Sequence[Any]) -> bool:
    """Whether the values differ, and leaving out any step changes one of them."""
    values = [value(steps, x) for x in inputs]
    shorter = [
        [*steps[:at], *steps[at + 1 :]] for at, step in enumerate(steps) if step.takes == step.gives
    ]
    return len({repr(found) for found in values}) > 2 and all(
        [value(less, x) for x in inputs] != values for less in shorter
    )


def _prompt(kind: str, steps: Sequence[Step], inputs: Sequence[Any], source: str) -> Prompt:
    shown = inputs[-1]
    listed = "\n".join(f"{at}. {step.words}" for at, step in enumerate(steps, 1))
    text = (
        f"Write a Python function {_NAME}(x). x is {KINDS[kind]}. The function does this, in"
        f" order, and returns what comes out:\n{listed}\n\nFor example, {_NAME}({shown!r}) is"
        f" {value(steps, shown)!r}. Give the function in a block that begins with ```python."
    )
    tests = [
        {"kind": "call", "function": _NAME, "args": [x], "value": value(steps, x)} for x in inputs
    ]
    return Prompt(
        text, tests, kind=kind, gold=f"```python\n{source}```", meta={"level": len(steps)}
    )
