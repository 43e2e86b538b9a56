"""Calculations: sums and products of two numbers, with a calculator as a tool.

    prompt    37*46=
    response  [37*46]1702;1702.
    response  1702.

There is one token per character. The calculator (`environment`) gets the text between brackets, and
its reply ends with `;`. The answer is the text after the last `;`, or the whole response. In a run
without turns there is no calculator: the policy continues after the bracket.

A note (`show_hint`) comes before the question, followed by `;`. The base model has seen no notes,
and makes mistakes after one.

With `wrong_labels`, a fraction of the train prompts has an incorrect answer, 10 too small, as after
a forgotten carry. Gold and solution are then also incorrect; test prompts are not.

The task is a small model of tool use. The shipped base model adds two-digit numbers without a tool
and cannot multiply them. For any question it calls the tool in one of ten responses. A call costs
`call_cost` of the reward, so it is useful only if the policy would be incorrect. `meta["calls"]` of
a prompt are its reference calls: one for a product, none for a sum.
"""

import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from rlvr_jax.ranges import NonNegative, NonNegativeInt, Unit
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.generated import held_apart
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.settings import HeldOut, ResponseTokens, task
from rlvr_jax.tools import Environment, between, calculator, toolbox
from rlvr_jax.verifiers.grade import Grade

__all__ = ["BASE_MODEL", "UNKNOWN", "VOCABULARY", "calculations", "calculator_calls"]

UNKNOWN = "?"
"""Replaces every other character, such as those of a calculator's error."""
PADDING = "<pad>"
VOCABULARY = (*"0123456789+*=[];.", UNKNOWN, PADDING)
BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "calculations")
NUMBERS = range(10, 100)
KINDS = {"sum": "+", "product": "*"}
# For the largest product: a call, its reply, an answer with its end, and one more call.
MAX_TOKENS = 32


def calculator_calls() -> Environment:
    """The environment: a calculator of the text between brackets."""
    style = between("[", "]", "calculator", "", ";")
    return toolbox(calculator(), style=style, most=2, describe=False)


@task
def calculations(
    held_out: HeldOut = "test",
    call_cost: Annotated[
        NonNegative, "subtracted from the reward (not the outcome) per call"
    ] = 0.1,
    response_tokens: ResponseTokens = MAX_TOKENS,
    wrong_labels: Annotated[Unit, "fraction of the train prompts with an incorrect answer"] = 0.0,
    sums: Annotated[NonNegativeInt, "number of train prompts, sums only; 0: all prompts"] = 0,
) -> Task:
    """The task; prompts are split 6:1:1 by the pair of numbers, for sums, products and both orders
    alike. Replies of the calculator count as tokens of the response.

    Metrics: calls (calls of the calculator in a response).
    """
    pairs = list(itertools.combinations_with_replacement(NUMBERS, 2))
    train, test = (
        tuple(
            _prompt(kind, *pair)
            for kind in KINDS
            for members in chosen
            for pair in sorted(set(itertools.permutations(members)))
        )
        for chosen in held_apart(pairs, held_out)
    )
    if sums:
        train = [prompt for prompt in train if prompt.kind == "sum"]
        train = [train[n] for n in np.random.default_rng(0).permutation(len(train))[:sums]]
    order = np.random.default_rng(1).permutation(len(train)).tolist()
    wrong = {*order[: round(wrong_labels * len(train))]}
    train = tuple(
        _labelled(prompt, prompt.answer - 10) if number in wrong else prompt
        for number, prompt in enumerate(train)
    )
    return Task(
        name="calculations",
        train=train,
        test=test,
        verify=partial(_verify, call_cost),
        response_tokens=response_tokens,
        base_model=BASE_MODEL,
        rewards=("outcome", "calls"),
        answers=True,
        environment=calculator_calls(),
        show_hint=_show_hint,
        # The gold answer again, and the call of a product.
        derived=("solution", "meta"),
    )


def _show_hint(prompt: Prompt, text: str) -> str:
    """A note in letters of the vocabulary precedes the question."""
    return f"{''.join(text.split())};{prompt.text}"


def _prompt(kind: str, a: int, b: int) -> Prompt:
    value = a + b if kind == "sum" else a * b
    expression = f"{a}{KINDS[kind]}{b}"
    # The base model adds without a tool.
    calls = [] if kind == "sum" else [("calculator", {"expression": expression})]
    return _labelled(Prompt(f"{expression}=", value, kind, meta={"calls": calls}), value)


def _labelled(prompt: Prompt, value: int) -> Prompt:
    return replace(prompt, answer=value, gold=str(value), solution=(str(value),))


@one_by_one
def _verify(call_cost: float, prompt: Prompt, response: Response) -> Grade:
    """Correct if the text after the last `;` is the value in its usual form."""
    calls = response.text.count("]")
    answer = None if response.truncated else response.text.split(";")[-1]
    right = float(answer == str(prompt.answer))
    info = {"calls": float(calls)}
    return Grade(right, right - call_cost * calls, info=info, answer=answer or None)
