"""Arithmetic: small questions in words, for language models with a chat template.

    What is 7 times 8?      kind "product"
    What is 9 + 5?          kind "sum"
    What is 51 + 99?        kind "two_digit_sum" (hard questions only)

A response is correct if its last number is the answer. The answer may be anywhere, even if the
budget truncates the response after it: small models first learn the form, then the facts. The
questions are few on purpose (64 products, 361 sums). A fifth of the unordered pairs is held out, so
7 times 8 and 8 times 7 are in the same split.

`meta["level"]` is the number of digits of both numbers together, minus one: 1 to 3. `solution` has
two steps, the repeated question and the answer.
"""

import itertools
import re
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from rlvr_jax.ranges import OpenUnit, Range
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.settings import ResponseTokens, SplitSeed, task
from rlvr_jax.verifiers.grade import Grade

__all__ = ["arithmetic", "grade_found", "last_number"]

SMALLEST = 2
TWO_DIGITS = (10, 99)
# A minus sign counts only where no number or word is before it: "51-99" ends with 99.
_NUMBER = re.compile(
    r"(?:(?<![\w)])[-−])?(?:[0-9]+(?:,[0-9]{3}(?![0-9]))*(?:\.[0-9]+)?|\.[0-9]+)", re.ASCII
)
# Python refuses to read longer numbers; no answer of this task is that long.
_MAX_DIGITS = 100


@task
def arithmetic(
    questions: Literal["easy", "hard"] = "easy",
    max_factor: Annotated[int, Range(SMALLEST + 1), "largest factor of a product"] = 9,
    max_term: Annotated[int, Range(SMALLEST + 1), "largest term of a small sum"] = 20,
    held_out: Annotated[OpenUnit, "fraction of the unordered pairs in the test split"] = 0.2,
    seed: SplitSeed = 0,
    response_tokens: ResponseTokens = 20,
) -> Task:
    """Two kinds of questions, half of each.

    "easy" are products and sums of small numbers; "hard" are sums of small numbers and sums of
    two-digit numbers (10..99, not both small).

    Args:
      questions: kinds of questions, see above.

    Metrics: ended (1 for a response that ends within its budget).
    """
    pairs = {"sum": _pairs(SMALLEST, max_term)}
    if questions == "easy":
        pairs["product"] = _pairs(SMALLEST, max_factor)
    else:
        pairs["two_digit_sum"] = [pair for pair in _pairs(*TWO_DIGITS) if max(pair) > max_term]
        if not pairs["two_digit_sum"]:
            raise ValueError(
                f"arithmetic: max_term must be below {TWO_DIGITS[1]} for hard questions, got"
                f" {max_term}"
            )
    train, test = [], []
    for kind, members in sorted(pairs.items()):
        order = np.random.default_rng(seed).permutation(len(members))
        bound = min(max(round(held_out * len(members)), 1), len(members) - 1)
        for split, chosen in ((test, order[:bound]), (train, order[bound:])):
            for index in sorted(chosen):
                split += _prompts(kind, *members[index])
    return Task(
        name="arithmetic" if questions == "easy" else f"arithmetic:{questions}",
        train=tuple(train),
        test=tuple(test),
        verify=_verify,
        response_tokens=response_tokens,
        mixture=dict.fromkeys(sorted(pairs), 0.5),
        rewards=("outcome", "ended"),
        answers=True,
        derived=("solution", "meta"),
    )


def last_number(text: str) -> Fraction | None:
    """The last decimal number in a text (`1,234` is one number); None if there is none."""
    found = _NUMBER.findall(text)
    if not found or len(found[-1]) > _MAX_DIGITS:
        return None
    return Fraction(found[-1].replace(",", "").replace("−", "-"))


def grade_found(prompt: Prompt, found: Fraction | str | None, **info: float) -> Grade:
    """A grade that is correct if the extracted answer is that of the prompt."""
    answer = None if found is None else str(found)
    return Grade(float(found == prompt.answer), info=info, answer=answer)


def _pairs(smallest: int, largest: int) -> list[tuple[int, int]]:
    return list(itertools.combinations_with_replacement(range(smallest, largest + 1), 2))


def _prompts(kind: str, a: int, b: int) -> list[Prompt]:
    """The question for an unordered pair, in both orders."""
    sign, answer = (" times ", a * b) if kind == "product" else (" + ", a + b)
    equal = " is" if kind == "product" else " ="
    prompts = []
    for x, y in sorted({(a, b), (b, a)}):
        solution = (f"{x}{sign}{y}{equal}", f" {answer}.")
        prompts.append(
            Prompt(
                text=f"What is {x}{sign}{y}?",
                answer=answer,
                kind=kind,
                gold="".join(solution),
                solution=solution,
                meta={"level": len(f"{x}{y}") - 1},
            )
        )
    return prompts


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    return grade_found(prompt, last_number(response.text), ended=float(not response.truncated))
