"""Partial sums: a worked trace of a few additions, and prefixes with one planted error.

    prompt    4 + 5 + 6 + 7 =
    response  4 + 5 = 9 ; 9 + 6 = 15 ; 15 + 7 = 22

A response is correct if its last number is the sum. `meta["flawed"]` has a prefix for each kind of
error, up to its line: "calculation", an incorrect result; "reasoning", a line that adds the next
number instead of the correct one. `meta["level"]` is the number of lines.
"""

import itertools
from collections.abc import Sequence
from random import Random
from typing import Annotated

from rlvr_jax.ranges import Count, Range
from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.sums.arithmetic import grade_found, last_number
from rlvr_jax.verifiers.grade import Grade

__all__ = ["FLAWS", "flawed_sum", "partial_sums"]

FLAWS = ("calculation", "reasoning")
LEAST_TERMS = 3
"""A sum of two terms has one line, in which no term can be skipped."""


def flawed_sum(numbers: Sequence[int], position: int, kind: str, delta: int = 0) -> list[str]:
    """The lines of a running sum up to the first incorrect one.

    Args:
      numbers: terms of the sum.
      position: the line of the error, from 0; for "reasoning" not the last line.
      kind: "calculation": the result differs by `delta`. "reasoning": the line adds the next number
        instead of its term.
      delta: difference of the result, for "calculation".
    """
    totals = list(itertools.accumulate(numbers))
    lines = [_line(totals[k], numbers[k + 1], totals[k + 1]) for k in range(position)]
    before = totals[position]
    if kind == "calculation":
        term, total = numbers[position + 1], totals[position + 1] + delta
    else:
        term, total = numbers[position + 2], before + numbers[position + 2]
    return [*lines, _line(before, term, total)]


def _line(a: int, b: int, total: int) -> str:
    return f"{a} + {b} = {total}"


@generated(response_tokens=32, size=500)
def partial_sums(
    terms: Annotated[int, Range(LEAST_TERMS), "number of terms of a sum"] = 4,
    largest: Annotated[Count, "largest term"] = 9,
) -> Generated:
    """Sums with their traces; the seed determines prompts and errors."""

    def draw(random: Random, kind: str) -> Prompt:
        numbers = [random.randint(1, largest) for _ in range(terms)]
        text = " + ".join(map(str, numbers)) + " ="
        totals = list(itertools.accumulate(numbers))
        lines = [_line(totals[k], numbers[k + 1], totals[k + 1]) for k in range(terms - 1)]
        place = random.randrange(terms - 2)
        delta = random.choice((-1, 1))
        flawed = {
            flaw: " ; ".join(flawed_sum(numbers, place, flaw, delta)) + " ;" for flaw in FLAWS
        }
        steps = [f"{line} ; " for line in lines[:-1]] + lines[-1:]
        return Prompt(
            text,
            answer=totals[-1],
            kind=kind,
            gold=" ; ".join(lines),
            solution=steps,
            meta={"level": terms - 1, "flawed": flawed},
        )

    derived = ("solution", "meta")
    return Generated(draw, ["sum"], verify=_verify, answers=True, derived=derived)


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    return grade_found(prompt, last_number(response.text))
