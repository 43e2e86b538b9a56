"""Noted calculations: calculations for a policy that reads notes, errors and its own response.

    37*46=                      a prompt, as in calculations
    *=;37*46=                   with a note, which says: call the calculator for a product
    [37*47]?;[37*46]1702;1702.  a response with an error, after which the policy calls again
    37*46=1502?                 a response, shown for a reflection
    02;0;*=.                    a reflection: 0 of 2 sub-tasks, not solved, and a note

Prompts, grades and vocabulary are those of `calculations`. A call of another expression than the
question's is an error, and the reply is `?;`. A note has two letters: `*` products, `+` sums or
`?` errors, then `=` for a call or `?` for an answer without one. Notes follow each other without a
space. The sub-tasks of a product are the call and the answer; those of a sum are an answer without
a call, and its value. `hints` of a prompt has the note for its kind.

The base model calls the calculator in three of ten responses. Three of ten calls have an incorrect
number, and it calls again after half of the errors. It heeds nine of ten notes. Its reflections are
mostly true, and one of five notes in them is random.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.options import takes_options_of
from rlvr_jax.tasks.sums.calculations import UNKNOWN, calculations
from rlvr_jax.tools import between, calculator, toolbox
from rlvr_jax.tools.base import ToolError
from rlvr_jax.tools.toolbox import Toolbox
from rlvr_jax.verifiers.texts.reflections import Reflection

__all__ = ["BASE_MODEL", "NOTES", "noted_calculations", "read_note", "with_response"]

BASE_MODEL = str(Path(__file__).parents[1] / "base_models" / "noted_calculations")
NOTES = ("?=", "*=", "+=", "*?", "+?")
LESSONS = {"product": "*=", "sum": "+?"}
_REFLECTION = re.compile(r"([0-9])([1-9]);([01]);((?:[?*+][=?])*)\.?")


@takes_options_of(calculations)
def noted_calculations(**settings: Any) -> Task:
    """The task; its settings are those of `calculations`."""
    plain = calculations(**settings)
    train, test = (
        tuple(replace(prompt, hints=(LESSONS[prompt.kind],)) for prompt in split)
        for split in (plain.train, plain.test)
    )
    return replace(
        plain,
        train=train,
        test=test,
        derived=(*plain.derived, "hints"),
        name="noted_calculations",
        base_model=BASE_MODEL,
        show_answer=with_response,
        read_reflection=read_note,
        environment=strict_calculator(),
    )


def strict_calculator() -> Toolbox:
    """The environment: a calculator of the question only, whose other replies are errors."""
    known = calculator()

    def run(arguments, question):
        if f"{arguments['expression']}=" != question:
            raise ToolError("this is not the expression of the question")
        return question, known.run(arguments, None)[1]

    style = replace(between("[", "]", "calculator", "", ";"), wrap=_wrapped)
    box = toolbox(replace(known, run=run), style=style, most=3, describe=False)
    return _StrictCalculator(**{**vars(box), "label": "strict_calculator()"})


class _StrictCalculator(Toolbox):
    """A toolbox whose tools know the question."""

    def start(self, prompt: Prompt):
        (calls, states), messages = super().start(prompt)
        return (calls, dict.fromkeys(states, prompt.text)), messages


def _wrapped(text: str) -> str:
    return f"{UNKNOWN if text.startswith('Error') else text};"


def with_response(prompt: Prompt, response: str) -> str:
    """The prompt with a response to reflect on."""
    return f"{prompt.text}{response}?"


def read_note(text: str) -> Reflection | None:
    """The reflection in the letters of the task; None if it cannot be read."""
    found = _REFLECTION.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        return None
    return Reflection(int(found[1]), int(found[2]), found[3] == "1", found[4])
