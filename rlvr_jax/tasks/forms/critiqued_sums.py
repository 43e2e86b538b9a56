r"""Critiqued sums: sums with their lines, and critiques of worked solutions as further prompts.

    prompt    4+17+6?                       prompt    4+17+6?4+17=24;24+6=30;critique?
    response  4+17=21;21+6=27               response  21;27\conclusion{False}

A sum is correct if the last number of the response is its value. The critiques are prompts of kind
"verdict" (`with_verdicts`). Each problem has a correct solution and one with a slip. The test split
has sums only: critiques are to improve solutions.

With `written_critiques`, all train prompts request critiques, and `solution` of each is a critique:
the correct result of each line, and the conclusion.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Annotated

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.derived.verdicts import KIND, with_verdicts
from rlvr_jax.tasks.forms.words import BASE_MODEL
from rlvr_jax.tasks.forms.worked_sums import candidates, problem_text, problems, verify_sum, worked
from rlvr_jax.tasks.settings import HeldOut, ResponseTokens, Seed, task

__all__ = ["REQUEST", "critiqued_sums"]

REQUEST = "{problem}{solution};critique?"
# Two lines of five words, their sign and the stop token; some more for other texts.
MAX_TOKENS = 16


@task
def critiqued_sums(
    held_out: HeldOut = "test",
    seed: Seed = 0,
    response_tokens: ResponseTokens = MAX_TOKENS,
    written_critiques: Annotated[bool, "only prompts for critiques, with their critiques"] = False,
) -> Task:
    """The task; problems are split 6:1:1 by their sorted numbers, and the seed determines slips."""
    random = Random(f"critiqued_sums {seed}")
    train, test = problems(held_out)
    sums = Task(
        name="critiqued_sums",
        train=tuple(map(_prompt, train)),
        test=tuple(map(_prompt, test)),
        verify=verify_sum,
        response_tokens=response_tokens,
        base_model=BASE_MODEL,
        answers=True,
    )
    labelled = {numbers: candidates(numbers, random) for numbers in train}
    solutions = [one for own in labelled.values() for one in own]
    task = replace(with_verdicts(sums, solutions, request=REQUEST), name=sums.name)
    if not written_critiques:
        return task
    asked = [prompt for prompt in task.train if prompt.kind == KIND]
    written = [results_of(numbers) for numbers, own in labelled.items() for _ in own]
    critiques = zip(asked, written, strict=True)
    train = [replace(one, solution=(results, one.gold)) for one, results in critiques]
    return replace(task, train=train, mixture={}, derived=("solution",))


def results_of(numbers: Sequence[int]) -> str:
    """The correct result of each line, as in a critique."""
    return ";".join(map(str, list(itertools.accumulate(numbers))[1:]))


def _prompt(numbers: Sequence[int]) -> Prompt:
    return Prompt(problem_text(numbers), str(sum(numbers)), "sum", gold=worked(numbers))
