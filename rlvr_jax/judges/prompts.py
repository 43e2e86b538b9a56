"""What judges are shown: functions from texts to messages."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

from rlvr_jax.judges.calls import Message
from rlvr_jax.judges.rubric import check_rubric
from rlvr_jax.objectives import Criterion

__all__ = ["PromptOf", "comparison", "question", "rubric_question"]

PromptOf = Callable[..., Sequence[Message]]
"""(prompt=, response=, reference=, …) -> messages; texts, by name."""

GRADE = """\
Question:
{prompt}

Answer:
{response}

How good is this answer, from 0 (wrong or useless) to 10 (right and complete)? Think it through, \
then write the number alone on the last line."""

COMPARE = """\
Question:
{prompt}

First answer:
{response}

Second answer:
{other}

Rate both answers from 1 to 10. Write on the last line the rating of the first, a comma, and the \
rating of the second."""


def question(template: str = GRADE) -> PromptOf:
    """A template with names in braces, in one message of the user.

    Args:
      template: such as "{prompt} … {response}"; {reference} is the right answer. A brace of the
        text is written twice.
    Raises:
      ValueError: a template that does not show the response, or that names what there is not.
    """
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise ValueError(f"question: template must have whole braces, got {error}") from None
    known = {"prompt", "response", "other", "reference"}
    if "response" not in names or names - known:
        raise ValueError(
            f"question: template must show {{response}} and name none but {sorted(known)}, got"
            f" {sorted(names)}"
        )

    def prompt_of(**texts: Any):
        return ({"role": "user", "content": template.format(**texts)},)

    return prompt_of


def comparison(template: str = COMPARE) -> PromptOf:
    """A template that shows two answers, {response} and {other}."""
    return question(template)


def rubric_question(rubric: Sequence[Criterion]) -> PromptOf:
    """Asks for the points of every criterion in one call, a line "name: number" for each.

    Raises:
      ValueError: as `check_rubric`.
    """
    check_rubric(rubric)
    criteria = "\n".join(
        f"{one.name} (0 to {one.maximum:g}): {one.text or one.name}" for one in rubric
    )
    form = "\n".join(f"{one.name}: …" for one in rubric)

    def prompt_of(*, prompt, response, **others):
        del others
        text = (
            f"Question:\n{prompt}\n\nAnswer:\n{response}\n\nGive points for each criterion:\n"
            f"{criteria}\n\nThink it through, then end with these lines:\n{form}"
        )
        return ({"role": "user", "content": text},)

    return prompt_of
