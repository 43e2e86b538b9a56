"""Prompts of judges: functions from texts to messages."""

import string
from collections.abc import Callable, Sequence

from rlvr_jax.judges.calls import Message
from rlvr_jax.judges.rubric import check_rubric
from rlvr_jax.types import Criterion

__all__ = ["PromptOf", "comparison", "constraints_question", "question", "rubric_question"]
__all__ += ["shown_by"]

PromptOf = Callable[..., Sequence[Message]]
"""(prompt=, response=, reference=, meta=) -> messages; texts by name, and `Prompt.meta`."""

GRADE = """\
Question:
{prompt}

Answer:
{response}

How good is this answer, from 0 (wrong or useless) to 10 (right and complete)? Think it through, \
then write the number alone on the last line."""

_PAIR = """\
Question:
{prompt}

First answer:
{response}

Second answer:
{other}

"""

COMPARE = (
    _PAIR
    + """\
Rate both answers from 1 to 10. Write on the last line the rating of the first, a comma, and the \
rating of the second."""
)

STRENGTH = (
    _PAIR
    + """\
Which answer is better, and by how much? Think it through. Then write one number alone on the last \
line: -3, -2 or -1 if the first one is much, clearly or slightly better, and 1, 2 or 3 if the \
second one is."""
)


def _user(text: str) -> tuple[Message]:
    return ({"role": "user", "content": text},)


def question(template: str = GRADE) -> PromptOf:
    """A template with names in braces, as one message of the user.

    Args:
      template: such as "{prompt} … {response}"; {reference} is the correct answer. A literal brace
        is written twice.
    Raises:
      ValueError: the template lacks the response, or has unknown names.
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

    return lambda **texts: _user(template.format(**texts))


def comparison(template: str = COMPARE) -> PromptOf:
    """A template that shows two responses, {response} and {other}."""
    return question(template)


def constraints_question() -> PromptOf:
    """Asks whether a response satisfies those constraints of its prompt that no rule can check.

    They are the list of texts "soft" in `Prompt.meta`. A prompt without them has no question.

    Source: VerIF, https://github.com/THU-KEG/VerIF.
    """

    def prompt_of(*, prompt, response, meta, **_):
        constraints = meta.get("soft", ())
        if not constraints:
            return ()
        listed = "\n".join(f"- {constraint}" for constraint in constraints)
        return _user(
            f"Request:\n{prompt}\n\nAnswer:\n{response}\n\nDoes the answer keep all of these?\n"
            f"{listed}\n\nThink it through, then write YES or NO alone on the last line."
        )

    return prompt_of


def shown_by(prompt_of: PromptOf, show: Callable[[str], str]) -> PromptOf:
    """Shows a function of each response, such as the answer without the thought."""

    def shown(**texts):
        own = {name: show(texts[name]) for name in ("response", "other") if name in texts}
        return prompt_of(**texts | own)

    return shown


def rubric_question(rubric: Sequence[Criterion]) -> PromptOf:
    """Asks for the points of all criteria in one call, a line "name: number" for each."""
    check_rubric(rubric)
    criteria = "\n".join(
        f"{one.name} (0 to {one.maximum:g}): {one.text or one.name}" for one in rubric
    )
    form = "\n".join(f"{one.name}: …" for one in rubric)

    def prompt_of(*, prompt, response, **_):
        return _user(
            f"Question:\n{prompt}\n\nAnswer:\n{response}\n\nGive points for each criterion:\n"
            f"{criteria}\n\nThink it through, then end with these lines:\n{form}"
        )

    return prompt_of
