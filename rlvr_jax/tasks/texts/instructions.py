"""Instructions: write a text about a subject, in a form that can be checked.

    kinds: 1_instruction … 4_instructions

The outcome is 1 if the response follows all instructions of the prompt. With `partial=true` it is
the fraction of followed instructions. `verifiers.texts.instruction_checks` has the checks. The
subject of the text is not checked. `meta["level"]` is the number of instructions.
"""

from random import Random
from typing import Annotated

from rlvr_jax.ranges import Range
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.checked import verifier_of
from rlvr_jax.tasks.generated import Generated, generated
from rlvr_jax.tasks.texts.instruction_prompts import AMOUNTS, MOST, compose

MODULE = "rlvr_jax.verifiers.texts.instruction_following"


@generated()
def instructions(
    most: Annotated[int, Range(1, MOST), "number of instructions in a prompt"] = MOST,
    partial: Annotated[bool, "the outcome is the fraction of instructions followed"] = False,
    amount: Annotated[
        str,
        ("", *AMOUNTS),
        "check of the first instruction, which is about an amount; empty: any check",
    ] = "",
) -> Generated:
    """Prompts with 1 to `most` instructions, equally many of each number."""

    def draw(random: Random, count: int) -> Prompt:
        composed = compose(random, count, amount)
        return Prompt(
            text=composed.prompt,
            answer=composed.checks,
            kind=f"{count}_instruction{'s' if count > 1 else ''}",
            gold=composed.gold,
            meta={"level": count, "wrong": composed.wrong},
        )

    return Generated(
        draw,
        range(1, most + 1),
        worked=False,  # a gold response is random words
        verify=verifier_of(MODULE, {"every": not partial}, workers=0),
        derived=("meta",),
    )
