"""Worked sums of three numbers: problems, correct solutions, and solutions with one slip.

    problem   4+17+6?
    solution  4+17=21;21+6=27
    slip      4+17=24;24+6=30

Each line of a solution adds the next number. A slip changes one result; the lines after it continue
with that result, so the last number is incorrect.
"""

import itertools
import re
from collections.abc import Sequence
from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.derived.verdicts import Labelled
from rlvr_jax.tasks.forms.words import LARGEST
from rlvr_jax.tasks.generated import held_apart
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.verifiers.grade import Grade

__all__ = ["candidates", "problem_text", "problems", "slip_in", "verify_sum", "worked"]

TERMS = 3
NUMBERS = range(2, 21)
LARGEST_SLIP = 9


def problems(held_out: str) -> list[list[tuple[int, ...]]]:
    """The numbers of the train problems and of the held-out ones, split by the sorted numbers; all
    orders of three numbers are in one split."""
    triples = list(itertools.combinations_with_replacement(NUMBERS, TERMS))
    return [
        [order for triple in chosen for order in sorted(set(itertools.permutations(triple)))]
        for chosen in held_apart(triples, held_out)
    ]


def problem_text(numbers: Sequence[int]) -> str:
    """The problem of three numbers."""
    return "+".join(map(str, numbers)) + "?"


def worked(numbers: Sequence[int], slips: Sequence[int] = (0, 0)) -> str:
    """The lines of a solution; slips[k] is added to the result of line k."""
    total, lines = numbers[0], []
    for number, slip in zip(numbers[1:], slips, strict=True):
        lines.append(f"{total}+{number}={total + number + slip}")
        total += number + slip
    return ";".join(lines)


def slip_in(numbers: Sequence[int], random: Random) -> tuple[int, int]:
    """A slip in one of the two lines, which leaves all results in 0 .. 99."""
    totals = list(itertools.accumulate(numbers))[1:]
    line = random.randrange(len(totals))
    sizes = [
        slip
        for slip in range(-LARGEST_SLIP, LARGEST_SLIP + 1)
        if slip and totals[line] + slip >= 0 and totals[-1] + slip <= LARGEST
    ]
    slip = random.choice(sizes)
    return (slip, 0) if line == 0 else (0, slip)


def candidates(numbers: Sequence[int], random: Random) -> list[Labelled]:
    """Two solutions of a problem: a correct one and one with a slip."""
    problem = problem_text(numbers)
    return [
        Labelled(problem, worked(numbers), True),
        Labelled(problem, worked(numbers, slip_in(numbers, random)), False),
    ]


@one_by_one
def verify_sum(prompt: Prompt, response: Response) -> Grade:
    """A response is correct if its last number is the prompt's answer."""
    numbers = re.findall(r"\d+", response.text)
    answer = numbers[-1] if numbers and not response.truncated else None
    return Grade(float(answer == prompt.answer), answer=answer)
