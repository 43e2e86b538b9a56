"""Renamed package: calls of a package whose names are random, with its renamed documentation.

    prompt         What does jqwmfa.kzhtob(7, 4) return? Answer with the number.
    documentation  jqwmfa.kzhtob(a, b) returns a - b. For example, jqwmfa.kzhtob(9, 2) returns 7.

The documentation of the functions in a question is the hint of its prompt (`Prompt.hints`), so a
prompt does not show it. With the documentation a question is simple, without it the names mean
nothing. A policy that answers held-out questions without it has retained the documentation. Train
and test prompts have the same functions and different arguments.

Source: the environment of SE-Bench, Yuan et al. 2026, https://arxiv.org/abs/2602.04811, in small.
Answers are values instead of programs with tests. The package has six functions.
"""

import re
from collections.abc import Iterable, Mapping
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Annotated

import numpy as np

from rlvr_jax.ranges import Range
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE, splits
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.settings import ResponseTokens, Seed, Size, TestSize, task
from rlvr_jax.verifiers.grade import Grade

__all__ = ["rename", "renamed_module", "renamed_package", "renamed_text"]

_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
_LENGTH = 6  # of a name; 3e8 of them
_NUMBER = re.compile(r"-?\d+")
_LARGEST = 20  # argument of a function
_PACKAGE = SimpleNamespace(
    add=lambda a, b: a + b,
    subtract=lambda a, b: a - b,
    upper=max,
    lower=min,
    gap=lambda a, b: abs(a - b),
    double_add=lambda a, b: 2 * a + b,
)
_DOCUMENTATION = {
    "add": "package.add(a, b) returns a + b.",
    "subtract": "package.subtract(a, b) returns a - b.",
    "upper": "package.upper(a, b) returns the larger number of a and b.",
    "lower": "package.lower(a, b) returns the smaller number of a and b.",
    "gap": "package.gap(a, b) returns the larger number minus the smaller number of a and b.",
    "double_add": "package.double_add(a, b) returns 2 * a + b.",
}

_Calls = Annotated[
    int, Range(1, 3), "numbers of calls of a question (its level), each equally often"
]


@task
def renamed_package(
    min_calls: _Calls = 1,
    max_calls: _Calls = 2,
    size: Size = SIZE,
    test_size: TestSize = TEST_SIZE,
    seed: Seed = 0,
    response_tokens: ResponseTokens = 16,
) -> Task:
    """Questions about nested calls. The seed determines the names and the prompts."""
    names = rename([*_DOCUMENTATION, "package"], seed)
    module = renamed_module(_PACKAGE, {n: names[n] for n in _DOCUMENTATION}, names["package"])

    def sampled(random: Random, calls: int) -> Prompt:
        return _prompt(random, calls, names, module)

    train, test = splits(
        "renamed_package", sampled, range(min_calls, max_calls + 1), size, test_size, seed
    )
    return Task(
        name="renamed_package",
        train=train,
        test=test,
        verify=_verify,
        response_tokens=response_tokens,
        answers=True,
        show_hint=with_documentation,
    )


def with_documentation(prompt: Prompt, text: str) -> str:
    """The documentation before the question."""
    return f"{text}\n\n{prompt.text}"


def rename(identifiers: Iterable[str], seed: int) -> dict[str, str]:
    """A one-to-one map of identifiers to random ones of six letters.

    No new name occurs in an old one. The map is a function of the set of identifiers and the seed.
    """
    originals = sorted(set(identifiers))
    random, taken = np.random.default_rng(seed), set()
    names = {}
    for original in originals:
        while True:
            name = "".join(random.choice(_LETTERS, _LENGTH))
            if name not in taken and not any(name in other for other in originals):
                break
        taken.add(name)
        names[original] = name
    return names


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """The text, be it documentation or a question, with every identifier of the map replaced."""
    return re.sub(r"\b[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), text)


def renamed_module(module: object, names: Mapping[str, str], name: str) -> ModuleType:
    """A module called `name` that has the same functions only under their new names."""
    missing = sorted(original for original in names if not hasattr(module, original))
    if missing:
        raise ValueError(f"renamed_module: names must be of {module!r}, got {', '.join(missing)}")
    made = ModuleType(name)
    for original, new in names.items():
        setattr(made, new, getattr(module, original))
    return made


def _prompt(random: Random, calls: int, names: Mapping[str, str], module: ModuleType) -> Prompt:
    """A question with calls in each other; each call has its documentation once."""
    used = [random.choice(sorted(_DOCUMENTATION)) for _ in range(calls)]
    value = random.randint(1, _LARGEST)
    text = str(value)
    for name in used:
        other = random.randint(1, _LARGEST)
        text = f"package.{name}({text}, {other})"
        value = getattr(module, names[name])(value, other)
    documentation = []
    for name in dict.fromkeys(used):
        a, b = random.randint(1, _LARGEST), random.randint(1, _LARGEST)
        example = f"package.{name}({a}, {b}) returns {getattr(module, names[name])(a, b)}."
        documentation.append(f"{_DOCUMENTATION[name]} For example, {example}")
    question = f"What does {text} return? Answer with the number."
    return Prompt(
        renamed_text(question, names),
        answer=value,
        kind=f"{calls}_calls",
        gold=str(value),
        hints=(renamed_text("\n".join(documentation), names),),
        meta={"level": calls},
    )


@one_by_one
def _verify(prompt: Prompt, response: Response) -> Grade:
    """Correct if the last number of a complete response is the value."""
    numbers = _NUMBER.findall(response.text)
    answer = numbers[-1] if numbers and not response.truncated else None
    return Grade(float(answer == str(prompt.answer)), answer=answer)
