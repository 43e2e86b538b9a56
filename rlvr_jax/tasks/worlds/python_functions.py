"""A world of Python functions of one argument, which run in the sandbox.

Programs are in ```python fences and define `f`; inputs and outputs are JSON values. The answer of a
deduction or abduction is in an ```output or ```input fence. A proposal has one ```input fence per
input. Values are compared as JSON values with their types: 1 is neither 1.0 nor true.
"""

import json
from collections.abc import Sequence
from typing import Any

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.settings import ResponseTokens, task
from rlvr_jax.tasks.worlds.triplets import KINDS, Triplet, World, solve_prompt, verify_in
from rlvr_jax.verifiers.fences import fences, last_fence
from rlvr_jax.verifiers.programs.python.functions import run_functions, value_in
from rlvr_jax.verifiers.programs.python.outputs import same_value

__all__ = ["PYTHON_FUNCTIONS", "python_functions"]

MOST_INPUTS = 10
# Held-out questions, from simple ones to functions of some lines; self-play uses none of them.
PROGRAMS: dict[str, list[Any]] = {
    "def f(x):\n    return x": [3, "a", [1, 2], {"a": 1}],
    "def f(x):\n    return x * 2 + 1": [3, 10, -4, 0],
    "def f(x):\n    return sorted(x)": [[3, 1, 2], ["b", "a"], [], [5]],
    "def f(x):\n    return x[::-1]": ["abc", [1, 2, 3], "", [0]],
    "def f(x):\n    return sum(n for n in x if n % 2 == 0)": [[1, 2, 4], [7], [], [6, 6]],
    "def f(x):\n    return {c: x.count(c) for c in x}": ["aab", "", "xyz", "zz"],
    "def f(x):\n    a, b = 0, 1\n    for _ in range(x):\n        a, b = b, a + b\n    return a": [
        *(1, 5, 10, 20)
    ],
    "def f(x):\n    return ' '.join(w.capitalize() for w in x.split())": ["a b", "x", "", "q r s"],
}
WANTED = {
    "deduction": "What does f return for this? Put the value as JSON between ```output and ```.",
    "abduction": "For which input does f return this? Put one as JSON between ```input and ```.",
    "induction": "Write a function f of one argument that does this, between ```python and ```.",
}
PROPOSE = (
    "Write another function f of one argument, without randomness, time or input and output,"
    " between ```python and ```, and "
)
INPUTS = {
    "induction": f"{MOST_INPUTS} different inputs for it as JSON, each between ```input and ```.",
    "other": "one input for it as JSON between ```input and ```.",
}


def _block(name: str, text: str) -> str:
    return f"```{name}\n{text}\n```"


def _value(text: str) -> Any:
    found = last_fence(text, "output", "input", "json")
    return None if found is None else value_in(found.strip())


def _program(text: str) -> str | None:
    return last_fence(text, "python")


def _proposal(kind: str, text: str) -> tuple[str, list[Any]] | None:
    program, inputs = _program(text), [value_in(found) for found in fences(text, "input")]
    inputs = inputs[: MOST_INPUTS if kind == "induction" else 1]
    # A shown pair must not be hidden as well.
    alike = len({*map(json.dumps, inputs)}) < len(inputs)
    if program is None or not inputs or None in inputs or alike:
        return None
    return program, inputs


def _pairs(triplet: Triplet) -> str:
    return "\n".join(
        f"{json.dumps(a)} -> {json.dumps(b)}"
        for a, b in zip(triplet.inputs, triplet.outputs, strict=True)
    )


def _shown(kind: str, triplet: Triplet) -> str:
    if kind == "induction":
        return "\n".join([_pairs(triplet), WANTED[kind]])
    name, value = ("input", triplet.inputs[0])
    if kind == "abduction":
        name, value = "output", triplet.outputs[0]
    parts = [_block("python", triplet.program), _block(name, json.dumps(value)), WANTED[kind]]
    return "\n".join(parts)


def _asked(kind: str, references: Sequence[Triplet]) -> str:
    known = []
    for reference in references:
        known.append(_block("python", reference.program))
        known += [_block("input", json.dumps(value)) for value in reference.inputs]
    return "\n".join([*known, PROPOSE + INPUTS.get(kind, INPUTS["other"])])


PYTHON_FUNCTIONS = World(
    name="python_functions",
    first=Triplet("def f(x):\n    return x", ("Hello World", 1), ("Hello World", 1)),
    run=run_functions,
    same=lambda one, two: same_value(json.dumps(one), two),
    read_value=_value,
    read_program=_program,
    read_proposal=_proposal,
    show=_shown,
    request=_asked,
)


@task
def python_functions(response_tokens: ResponseTokens = 512) -> Task:
    """The task: a few functions, of which the last two are only evaluated.

    Raises:
      ValueError: the machine has no sandbox for programs.
    """
    results = run_functions(list(PROGRAMS.items()))
    runs = [outputs for outputs in results if outputs is not None]
    if len(runs) < len(results):
        raise ValueError(
            "python_functions: programs must run in this machine's sandbox (see python -m"
            " rlvr_jax.sandbox), got no outputs of those of the task"
        )
    triplets = [
        Triplet(program, tuple(inputs), tuple(outputs))
        for (program, inputs), outputs in zip(PROGRAMS.items(), runs, strict=True)
    ]

    def prompts(chosen: Sequence[Triplet]) -> list[Prompt]:
        return [solve_prompt(PYTHON_FUNCTIONS, kind, t) for t in chosen for kind in KINDS]

    return Task(
        name="python_functions",
        train=prompts(triplets[:-2]),
        test=prompts(triplets[-2:]),
        verify=verify_in(PYTHON_FUNCTIONS),
        response_tokens=response_tokens,
        rewards=("outcome", "readable"),
        answers=True,
        world=PYTHON_FUNCTIONS,
    )
