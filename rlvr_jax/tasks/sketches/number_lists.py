r"""Number lists: a list of numbers with constraints that rules check, and some that a judge checks.

    prompt    4 numbers;with 7;rising?
    response  3 7 12 30

Hard constraints are the number of words and a word that the list has; the outcome is the fraction
that the list satisfies. Soft constraints (`meta["soft"]`) are that the numbers rise, or that they
are even. A third of the prompts has none.

`judge` is a judge of the soft constraints that makes no mistakes:

    python -m rlvr_jax train --task number_lists --method instruction_following \
        --judge rlvr_jax.tasks.sketches.number_lists:judge --judge-prompt constraints

The base model often writes another number of words, and often violates the soft constraints.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.sketches.words import BASE_MODEL, LARGEST

__all__ = ["judge", "number_lists"]

SOFT = {"rising": "Each number is larger than the one before it.", "even": "Each number is even."}
"""Soft constraints by the word of a prompt."""


@generated(response_tokens=16, size=300, test_size=60)
def number_lists() -> Generated:
    """Prompts with either soft constraint and with none, in equal numbers.

    Metrics: all_followed (1 if all graded checks are followed), unjudged (ungraded checks).
    """
    return Generated(
        _prompt,
        (*SOFT, ""),
        verify=verifier_of("rlvr_jax.verifiers.texts.instruction_following", workers=0),
        base_model=BASE_MODEL,
        answers=True,
    )


def _prompt(random: Random, soft: str) -> Prompt:
    count = random.randint(2, 5)
    numbers = random.sample(range(0, LARGEST + 1, 2 if soft == "even" else 1), count)
    word = str(random.choice(numbers))
    checks = [
        {"check": "number_words", "arguments": ["exactly", count]},
        {"check": "keywords", "arguments": [[word]]},
    ]
    numbers = sorted(numbers) if soft == "rising" else numbers
    return Prompt(
        ";".join([f"{count} numbers", f"with {word}", *([soft] if soft else [])]) + "?",
        checks,
        soft or "none",
        " ".join(map(str, numbers)),
        meta={"soft": [SOFT[soft]]} if soft else {},
    )


def follows(text: str, constraint: str) -> bool:
    """Whether the numbers of a text satisfy a soft constraint."""
    numbers = [int(word) for word in text.split() if word.isdigit()]
    if constraint == SOFT["even"]:
        return bool(numbers) and not any(number % 2 for number in numbers)
    return bool(numbers) and all(a < b for a, b in pairwise(numbers))


def judge(messages: Sequence[Mapping[str, str]]) -> str:
    """YES if the list satisfies all constraints, else NO.

    Args:
      messages: a chat whose last message is a `rlvr_jax.judges.constraints_question`.
    """
    lines = messages[-1]["content"].splitlines()
    answer = lines[lines.index("Answer:") + 1]
    constraints = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    return "YES" if all(follows(answer, one) for one in constraints) else "NO"
