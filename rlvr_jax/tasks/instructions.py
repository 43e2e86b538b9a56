"""Instructions: write a text about something, in a form that can be checked.

    kinds: 1_instruction … 4_instructions

The outcome is 1 if all instructions of the prompt are followed; with `partial=true` it is the share
that is. How each is read says `verifiers.texts.instruction_checks`. Nothing says whether the text
is about its subject: the samples show it. `meta["level"]` is the number of instructions.
"""

import functools
from random import Random

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE, splits
from rlvr_jax.tasks.instruction_prompts import AMOUNTS, MOST, compose
from rlvr_jax.verifiers.checks import Check

_MODULE = "rlvr_jax.verifiers.texts.instruction_following"
CHECK = Check(f"{_MODULE}:check", f"{_MODULE}:extract", {"every": True})


@functools.cache
def instructions(
    most: int = MOST,
    partial: bool = False,
    amount: str = "",
    size: int = SIZE,
    test_size: int = TEST_SIZE,
    seed: int = 0,
    response_tokens: int = 256,
) -> Task:
    """Prompts with 1 to `most` instructions, as many of each number.

    Args:
      most: instructions of a prompt, at most 4.
      partial: the outcome is the share of the instructions that are followed; half an answer then
        earns something.
      amount: the check of a prompt's first instruction, which says how much: "number_words",
        "number_sentences", "number_paragraphs" or "bullets"; empty: any of them.
      size, test_size: prompts of the two splits.
      seed: of the prompts.
      response_tokens: budget of a response.
    Raises:
      ValueError: most out of range, another amount, a size below 1, more prompts than there are.
    """
    if not 1 <= most <= MOST:
        raise ValueError(f"instructions: most must be in 1..{MOST}, got {most}")
    if amount and amount not in AMOUNTS:
        raise ValueError(
            f"instructions: amount must be one of {', '.join(AMOUNTS)}, got {amount!r}"
        )

    def draw(random: Random, count: int) -> tuple[str, Prompt]:
        composed = compose(random, count, amount)
        prompt = Prompt(
            text=composed.prompt,
            answer=composed.checks,
            kind=f"{count}_instruction{'s' if count > 1 else ''}",
            gold=composed.gold,
            meta={"level": count, "wrong": composed.wrong},
        )
        return composed.prompt, prompt

    counts = range(1, most + 1)
    # What follows the instructions is words at random.
    train, test = splits("instructions", draw, counts, size, test_size, seed, worked=False)
    check = Check(CHECK.check, CHECK.extract, {"every": not partial})
    return Task(
        name="instructions",
        train=train,
        test=test,
        verify=verifier(check, workers=0),
        response_tokens=response_tokens,
        derived=("meta",),
    )
