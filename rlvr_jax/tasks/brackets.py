"""Brackets: reach a target with three numbers in order, + - *, and one pair of brackets.

    prompt    3 9 4 15 >
    response  ( 3 + 9 = 12 ) - 4 = 8 ; 3 * ( 9 - 4 = 5 ) = 15 .

There is one token per number 0..99 and per sign. An attempt has one of two forms: *left*
`( a op b = x ) op c = r` or *right* `a op ( b op c = x ) = r`. A response has at most two attempts,
separated by `;`, and ends with the stop token `.`. Only the last attempt counts. *Easy* prompts
have a solution of the left form (half of them also one of the right form), *hard* prompts only of
the right form.

The task is a small model of exploration: the shipped base model prefers the left form, which solves
two thirds of the prompts. The others need the form that it rarely uses. `meta["level"]` is 1 to 5
if the largest number of the prompt is at most 4, 6, 8, 10 or 12. `solution` is the gold word by
word, and `meta["solutions"]` has all attempts that reach the target. `meta["flawed"]` has a first
attempt with one error, which a response may correct in its second attempt: "calculation", the gold
with an incorrect result in brackets; "reasoning", a legal attempt that misses the target.
"""

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from rlvr_jax.ranges import Range
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.bracket_equations import OPERATORS, equation_scores
from rlvr_jax.tasks.generated import held_apart
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.settings import HeldOut, ResponseTokens, task
from rlvr_jax.verifiers.grade import Grade

__all__ = ["BASE_MODEL", "MAX_TOKENS", "VOCABULARY", "Attempt", "brackets", "legal_attempts"]
__all__ += ["grade_attempt", "problem_of"]

LARGEST_OPERAND = 12
LARGEST_VALUE = 99
SIGNS = ("(", ")", "+", "-", "*", "=", ";", ".", ">")
PADDING = "<pad>"
VOCABULARY = (*map(str, range(LARGEST_VALUE + 1)), *SIGNS, PADDING)
# The largest number in prompts of each level except the last.
LEVELS = (4, 6, 8, 10)
# Two attempts of eleven tokens, `;` and `.`.
MAX_TOKENS = 24
BASE_MODEL = str(Path(__file__).parent / "base_models" / "brackets")


class Attempt(NamedTuple):
    """A valid attempt: its form ("left" or "right"), its text and its value."""

    form: str
    text: str
    value: int


@functools.cache
def legal_attempts(a: int, b: int, c: int) -> tuple[Attempt, ...]:
    """All attempts on three numbers whose intermediate and final values stay in 0..99."""
    attempts = []
    for (first, f), (second, g) in itertools.product(OPERATORS.items(), repeat=2):
        left, right = f(a, b), g(b, c)
        for form, inner, value, text in (
            ("left", left, g(left, c), f"( {a} {first} {b} = {left} ) {second} {c}"),
            ("right", right, f(a, right), f"{a} {first} ( {b} {second} {c} = {right} )"),
        ):
            if 0 <= inner <= LARGEST_VALUE and 0 <= value <= LARGEST_VALUE:
                attempts.append(Attempt(form, f"{text} = {value}", value))
    return tuple(attempts)


@task
def brackets(
    held_out: HeldOut = "test",
    response_tokens: ResponseTokens = MAX_TOKENS,
    # Fewer prompts would leave a kind without one; more do not exist.
    train: Annotated[int | None, Range(3, 9768), "number of train prompts; None: all"] = None,
) -> Task:
    """The task; prompts are split 6:1:1 by the sorted triple of numbers.

    With `train`, the kinds have their fractions of all prompts. The prompts of a smaller number are
    among those of a larger number.

    Metrics: legal (1 for a legal last attempt), right_form (1 for an attempt with the brackets on
      the right).
    """
    numbers = range(1, LARGEST_OPERAND + 1)
    triples = list(itertools.combinations_with_replacement(numbers, 3))
    prompts, test = (
        tuple(
            prompt
            for members in chosen
            for triple in sorted(set(itertools.permutations(members, 3)))
            for prompt in _prompts(triple)
        )
        for chosen in held_apart(triples, held_out)
    )
    return Task(
        name="brackets",
        train=prompts if train is None else _fewer(prompts, train),
        test=test,
        verify=_verify,
        response_tokens=response_tokens,
        mixture={"easy": 0.67, "hard": 0.33},
        base_model=BASE_MODEL,
        rewards=("outcome", "legal"),
        answers=True,
        score_steps=equation_scores,
        derived=("solution", "meta"),
    )


def _fewer(prompts: Sequence[Prompt], number: int) -> tuple[Prompt, ...]:
    """The first `number` prompts in a fixed order of each kind, in their original order."""
    kinds: dict[str, list[int]] = {}
    for index, prompt in enumerate(prompts):
        kinds.setdefault(prompt.kind, []).append(index)
    chosen, before = [], 0.0
    for number_of_kind, (_, members) in enumerate(sorted(kinds.items())):
        order = np.random.default_rng([1, number_of_kind]).permutation(members)
        # Differences of rounded sums, so that the sizes add up to `number`.
        after = before + number * len(members) / len(prompts)
        chosen.extend(order[: round(after) - round(before)])
        before = after
    return tuple(prompts[index] for index in sorted(chosen))


def _prompts(triple: tuple[int, int, int]) -> list[Prompt]:
    """One prompt for each value that three numbers in this order can reach."""
    solutions: dict[int, list[Attempt]] = {}
    for attempt in legal_attempts(*triple):
        solutions.setdefault(attempt.value, []).append(attempt)
    level = sum(max(triple) > bound for bound in LEVELS) + 1
    prompts = []
    for target, attempts in sorted(solutions.items()):
        left = [attempt for attempt in attempts if attempt.form == "left"]
        gold = (left or attempts)[0].text
        prompts.append(
            Prompt(
                text=f"{' '.join(map(str, triple))} {target} >",
                answer=[*triple, target],
                kind="easy" if left else "hard",
                gold=gold,
                solution=_words(gold),
                meta={
                    "level": level,
                    "solutions": [_words(attempt.text) for attempt in attempts],
                    "flawed": flawed_attempts(triple, gold, target),
                },
            )
        )
    return prompts


def flawed_attempts(triple: tuple[int, int, int], gold: str, target: int) -> dict[str, str]:
    """First attempts with one error, up to the sign that begins the second one.

    Returns:
      "calculation": the gold, whose result in brackets differs by 1, and its value accordingly.
      "reasoning": a legal attempt with another value. Either may be missing.
    """
    words, flawed = gold.split(), {}
    left = words[0] == "("
    place, correct = (5, int(words[5])) if left else (7, int(words[7]))
    for inner in (correct + 1, correct - 1):
        value = _outer(words, left, inner)
        if min(inner, value) >= 0 and max(inner, value) <= LARGEST_VALUE:
            changed = [*words[:place], str(inner), *words[place + 1 : -1], str(value)]
            flawed["calculation"] = " ".join([*changed, ";"])
            break
    others = [one.text for one in legal_attempts(*triple) if one.value != target]
    if others:
        flawed["reasoning"] = f"{others[(sum(triple) + target) % len(others)]} ;"
    return flawed


def _outer(words: Sequence[str], left: bool, inner: int) -> int:
    """The value of an attempt with this result in brackets."""
    if left:
        return OPERATORS[words[7]](inner, int(words[8]))
    return OPERATORS[words[1]](int(words[0]), inner)


def problem_of(numbers: Sequence[int], target: int) -> Prompt:
    """The prompt of any three numbers and a target, which may be out of reach; without a worked
    solution."""
    left = any(a.value == target and a.form == "left" for a in legal_attempts(*numbers))
    return Prompt(
        f"{' '.join(map(str, numbers))} {target} >",
        answer=[*numbers, target],
        kind="easy" if left else "hard",
    )


def _words(text: str) -> list[str]:
    """The words of a text, each with the space before it."""
    return re.findall(r" ?\S+", text)


def grade_attempt(prompt: Prompt, response: Response, values: Mapping[str, int]) -> Grade:
    """Correct if the last of at most two attempts is legal and reaches the target in time.

    Args:
      values: value of each legal attempt, by its text.
    """
    attempts = response.text.split(" ; ")
    last = attempts[-1].strip()
    value = values.get(last)
    correct = not response.truncated and len(attempts) <= 2 and value == prompt.answer[-1]
    answer = None if response.truncated else last
    return Grade(float(correct), info={"legal": float(value is not None)}, answer=answer)


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    legal = {attempt.text: attempt.value for attempt in legal_attempts(*prompt.answer[:3])}
    grade = grade_attempt(prompt, response, legal)
    # An illegal attempt has the form of its first sign.
    last = response.text.split(" ; ")[-1].strip()
    form = float(not last.startswith("(") and "(" in last)
    return replace(grade, info={"right_form": form, **grade.info})
