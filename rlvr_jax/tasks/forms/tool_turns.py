"""Tool turns: single turns of a policy with two tools, from generated states of a trajectory.

    prompt    (3+4)*(2+5)?;add(3,4)=7
    response  <tool_call>add(2,5)</tool_call><tool_call>mul(7,7)</tool_call>
    response  <answer>49</answer>

A question has three sub-questions: two sums, and their product. The state after the question has
the calls that were made and their results. The other sub-questions are open. The tools are computed
when a turn is graded, and the policy does not read their results.

A turn is correct if each of its calls solves another open sub-question. Where none is open, it is
correct if it has no call and contains the answer. A call that is malformed is not a call, and its
tags remain (`rlvr_jax.verifiers.texts.automated_tool_envs`).

The base model makes one to three calls, some with incorrect numbers, and answers too early in some
turns.
"""

import math
import re
from random import Random

from rlvr_jax.tasks.base import Prompt, Response
from rlvr_jax.tasks.forms.words import BASE_MODEL
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.texts.automated_tool_envs import TAGS, counted_calls, without_calls

__all__ = ["TOOLS", "call_text", "calls_in", "tool_turns"]

TOOLS = {"add": int.__add__, "mul": int.__mul__}
NUMBERS = range(1, 8)
_LARGEST_SUM = 9
_CALL = re.compile(rf"{TAGS[0]}({'|'.join(TOOLS)})\((\d{{1,2}}),(\d{{1,2}})\){TAGS[1]}")
# The sub-questions that the state has solved: the sums are solved in any order.
STATES = ((), (0,), (1,), (0, 1), (0, 1, 2))


@generated(response_tokens=28)
def tool_turns() -> Generated:
    """States of each kind, in equal numbers: no, one, both sums or all sub-questions are solved.

    Metrics: calls (calls in a turn), solved (calls that solve an open sub-question), without_calls
      (reward of a turn without calls; NaN with calls).
    """
    return Generated(
        _prompt,
        STATES,
        verify=_verify,
        base_model=BASE_MODEL,
        rewards=("calls", "solved", "without_calls"),
    )


def _prompt(random: Random, solved: tuple[int, ...]) -> Prompt:
    sums = []
    while len(sums) < 2:
        pair = random.choice(NUMBERS), random.choice(NUMBERS)
        sums += [pair] if sum(pair) <= _LARGEST_SUM else []
    (a, b), (c, d) = sums
    calls = [("add", a, b), ("add", c, d), ("mul", a + b, c + d)]
    done = [f"{_written(*calls[k])}={_result(*calls[k])}" for k in solved]
    left = [call for k, call in enumerate(calls) if k not in solved]
    answer = str(_result(*calls[-1]))
    unsolved: dict[str, list[str]] = {}
    for call in left:
        unsolved.setdefault(call[0], []).append(str(_result(*call)))
    return Prompt(
        ";".join([f"({a}+{b})*({c}+{d})?", *done]),
        answer={"value": answer, "unsolved": unsolved},
        kind=f"{len(left)}_open",
        gold="".join(call_text(*call) for call in left) or f"<answer>{answer}</answer>",
    )


def _written(tool: str, a: int, b: int) -> str:
    return f"{tool}({a},{b})"


def _result(tool: str, a: int, b: int) -> int:
    return TOOLS[tool](a, b)


def call_text(tool: str, a: int, b: int) -> str:
    """A call of a tool in a turn."""
    return f"{TAGS[0]}{_written(tool, a, b)}{TAGS[1]}"


def calls_in(text: str) -> list[tuple[str, int, int]]:
    """The calls of a turn that can be read, in order."""
    return [(tool, int(a), int(b)) for tool, a, b in _CALL.findall(text)]


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    unsolved = prompt.answer["unsolved"]
    num_open = sum(map(len, unsolved.values()))
    calls = calls_in(response.text)
    results = [str(_result(*call)) for call in calls]
    number, solved = counted_calls([tool for tool, *_ in calls], results, unsolved)
    fixed = without_calls(response.text, prompt.answer["value"], num_open)
    correct = solved == number if number else not num_open and fixed == 1
    return Grade(
        float(correct and not response.truncated),
        info={
            "calls": float(number),
            "solved": float(solved),
            "without_calls": math.nan if number else fixed,
        },
    )
