"""Countdown: reach a number with + - * / and each of some numbers once."""

from random import Random
from typing import Annotated

from rlvr_jax.ranges import Range
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.verifiers.puzzles.countdown import generate

_MODULE = "rlvr_jax.verifiers.puzzles.countdown"
# The check does not read longer expressions, which more numbers would need.
_Numbers = Annotated[int, Range(2, 12), "how many numbers a prompt has, each count equally often"]


@generated(response_tokens=128)
def countdown(
    min_numbers: _Numbers = 3,
    max_numbers: _Numbers = 5,
    max_value: Annotated[int, Range(2), "largest number"] = 50,
    max_target: Annotated[int, Range(2), "largest target"] = 200,
) -> Generated:
    """Every prompt has a solution; `meta["level"]` is the number of numbers minus 1."""

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
    return Generated(
        draw,
        counts,
        verify=verifier_of(_MODULE, workers=0, tags=("think", "answer")),
        answers=True,
        derived=("meta",),
    )
