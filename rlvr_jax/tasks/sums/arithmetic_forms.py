"""The questions of arithmetic, each with easier forms: four and ten options, and a gap to fill.

    What is 51 + 99?                         the prompt itself
    51 + 99 is __.                           "fill_in"
    What is 51 + 99? A 149 B 150 C 160 …     "four_choice", "ten_choice" (a line for each option)

`meta["variants"]` holds the forms, each with its answer: for a choice, a letter. A letter is
correct if it is the last separate letter of the response, a number if it is the last number.
`format` of a grade is 1 for exactly one `\\boxed{…}` with at most 10 characters after it.
"""

import functools
from dataclasses import replace
from typing import Any, Literal

from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.derived.reformulations import box_at_the_end, last_letter
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.options import takes_options_of
from rlvr_jax.tasks.sums.arithmetic import arithmetic, grade_found, last_number
from rlvr_jax.verifiers.grade import Grade

__all__ = ["arithmetic_forms", "verify_form", "with_forms"]

# From the correct option to the incorrect ones, in this order; options below 0 are left out.
DISTANCES = (1, -1, 10, -10, 2, -2, 9, -9, 11, 3, 20, 4)


@functools.cache
@takes_options_of(arithmetic, leave_out=("questions",))
def arithmetic_forms(questions: Literal["easy", "hard"] = "hard", **settings: Any) -> Task:
    """The task; its settings are those of `arithmetic`.

    Metrics: format (1 for a response that ends with a box).
    """
    plain = arithmetic(questions, **settings)
    return replace(
        plain,
        name="arithmetic_forms" if questions == "hard" else f"arithmetic_forms:{questions}",
        train=tuple(with_forms(prompt, _gap(prompt.text)) for prompt in plain.train),
        verify=verify_form,
        rewards=("outcome", "format"),
    )


def with_forms(prompt: Prompt, gap: str) -> Prompt:
    """The prompt with its easier forms in `meta["variants"]`.

    Args:
      prompt: its answer is a number.
      gap: the text of "fill_in".
    """
    answer = prompt.answer
    others = [str(answer + step) for step in DISTANCES if answer + step >= 0]
    variants = {
        "four_choice": {"options": [str(answer), *others[:3]]},
        "ten_choice": {"options": [str(answer), *others[:9]]},
        "fill_in": {"text": gap},
    }
    return replace(prompt, meta={**prompt.meta, "variants": variants})


def _gap(question: str) -> str:
    return f"{question.removeprefix('What is ').removesuffix('?')} is __."


@one_by_one
def verify_form(prompt: Prompt, response: Response) -> Grade:
    """A letter is correct if it is the last one, a number if it is the last number."""
    found = (last_letter if isinstance(prompt.answer, str) else last_number)(response.text)
    return grade_found(prompt, found, format=float(box_at_the_end(response.text)))
