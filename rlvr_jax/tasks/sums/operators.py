"""Operators: reach a target with three numbers in order and + - *, from left to right.

    prompt    3 9 4 15 >
    response  3 + 9 = 12 - 4 = 8 ; 3 * 9 = 27 - 4 = 23 .

The words are those of `brackets` (one token per number 0..99 and per sign, separated by single
spaces), so tokenizers and models of the two tasks are interchangeable. Grammar:

    response = attempt [" ; " attempt]            (then the stop token `.`)
    attempt  = a op b = x op c = r

with a, b, c the numbers of the prompt in their order, x = a op b, r = x op c, and values in 0..99.
Only the last attempt counts, and it must reach the target; an earlier one is not checked. One skill
solves every prompt. So the task shows the collapse of entropy, but not the gain of a method that
explores.
"""

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from rlvr_jax.tasks import brackets
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.settings import ResponseTokens, SplitSeed, task
from rlvr_jax.verifiers.grade import Grade

__all__ = ["MAX_TOKENS", "legal_attempts", "operators"]

LARGEST_OPERAND = 9
HELD_OUT = 1 / 8
# Two attempts of nine tokens, `;` and `.`.
MAX_TOKENS = 20


@functools.cache
def legal_attempts(a: int, b: int, c: int) -> dict[str, int]:
    """The value of each legal attempt on three numbers, by the text of the attempt."""
    return {
        attempt.text.replace("( ", "").replace(" )", ""): attempt.value
        for attempt in brackets.legal_attempts(a, b, c)
        if attempt.form == "left"
    }


@task
def operators(seed: SplitSeed = 0, response_tokens: ResponseTokens = MAX_TOKENS) -> Task:
    """The task: numbers 1..9, every reachable target, an eighth of the sorted triples held out;
    all orders of three numbers are in one split."""
    triples = list(itertools.combinations_with_replacement(range(1, LARGEST_OPERAND + 1), 3))
    order = np.random.default_rng(seed).permutation(len(triples))
    bound = round(HELD_OUT * len(triples))
    test, train = sorted(order[:bound]), sorted(order[bound:])
    return Task(
        name="operators",
        train=_prompts([triples[index] for index in train]),
        test=_prompts([triples[index] for index in test]),
        verify=_verify,
        response_tokens=response_tokens,
        rewards=("outcome", "legal"),
        answers=True,
    )


def _prompts(triples: Sequence[tuple[int, int, int]]) -> tuple[Prompt, ...]:
    """One prompt for each order of each triple and each value that order can reach."""
    prompts = []
    for triple in triples:
        for numbers in sorted(set(itertools.permutations(triple))):
            golds: dict[int, str] = {}
            for text, value in legal_attempts(*numbers).items():
                golds.setdefault(value, text)
            for target, gold in sorted(golds.items()):
                text = f"{' '.join(map(str, numbers))} {target} >"
                prompts.append(Prompt(text=text, answer=[*numbers, target], gold=gold))
    return tuple(prompts)


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    return brackets.grade_attempt(prompt, response, legal_attempts(*prompt.answer[:3]))
