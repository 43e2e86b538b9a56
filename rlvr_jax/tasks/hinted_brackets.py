"""Hinted brackets: the prompts of brackets, for a policy that can read a hint and another answer.

    3 9 4 15 >                                      a prompt, as in brackets
    3 9 4 15 ? 3 * >                                with a hint: how a solution begins
    3 9 4 15 @ ( 3 + 9 = 12 ) - 4 = 8 >             with an answer, correct or incorrect
    3 9 4 15 ? 3 * @ ( 3 + 9 = 12 ) - 4 = 8 >       with both

Prompts, answers and grades are those of `brackets`; the vocabulary has two more words, `?` and `@`.
The base model answers a plain prompt like that of brackets. It continues a hint, mostly repeats a
correct answer, and mostly tries the other form after an incorrect one. This is a separate task
because its model has another vocabulary: results of the two tasks are not comparable. `hints` of a
prompt has the first word of a solution, which shows only its form.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from rlvr_jax.tasks.base import Prompt, Response, StepScore, Task, Verify
from rlvr_jax.tasks.bracket_equations import equation_scores
from rlvr_jax.tasks.brackets import (
    LARGEST_OPERAND,
    LARGEST_VALUE,
    PADDING,
    VOCABULARY,
    brackets,
    legal_attempts,
    problem_of,
)
from rlvr_jax.tasks.options import takes_options_of
from rlvr_jax.verifiers.grade import Grade

__all__ = ["BASE_MODEL", "HINTED_VOCABULARY", "hinted_brackets", "read_problem", "with_answer"]
__all__ += ["with_hint"]

HINT, ANSWER, END = "?", "@", ">"
HINTED_VOCABULARY = (*VOCABULARY, HINT, ANSWER)
# Words that a hint or an answer must not have: they frame the prompt, or end a response.
_MARKS = {HINT, ANSWER, END, ".", PADDING}
BASE_MODEL = str(Path(__file__).parent / "base_models" / "hinted_brackets")


@functools.cache
@takes_options_of(brackets)
def hinted_brackets(
    judge_paths: Annotated[bool, "a step is correct if a solution begins so"] = False,
    any_statement: Annotated[bool, "accept a true equation of another problem, too"] = False,
    **settings: Any,
) -> Task:
    """The task; its other settings are those of `brackets`.

    Metrics: altered (with `any_statement`: 1 for a true attempt at another problem).
    """
    plain = brackets(**settings)
    return replace(
        plain,
        train=tuple(replace(prompt, hints=prompt.solution[:1]) for prompt in plain.train),
        test=tuple(replace(prompt, hints=prompt.solution[:1]) for prompt in plain.test),
        derived=(*plain.derived, "hints"),
        verify=partial(any_problem, plain.verify) if any_statement else plain.verify,
        score_steps=path_scores if judge_paths else plain.score_steps,
        name="hinted_brackets",
        base_model=BASE_MODEL,
        show_hint=with_hint,
        show_answer=with_answer,
        read_problem=read_problem,
    )


def any_problem(
    verify: Verify, prompts: Sequence[Prompt], responses: Sequence[Response]
) -> list[Grade]:
    """Grades like those of a prover that may change the statement.

    A true attempt whose numbers or result are not those of the prompt is also correct. Its
    `Grade.info["altered"]` is 1, and that of all other attempts is 0.
    """
    grades = []
    for prompt, response in zip(prompts, responses, strict=True):
        stated = read_problem(prompt, response.text)
        asked = prompt
        if stated is not None and _statement(stated) != _statement(prompt):
            (other,) = verify([stated], [response])
            asked = stated if other.outcome == 1 else prompt
        (grade,) = verify([asked], [response])
        altered = float(asked is not prompt)
        grades.append(replace(grade, info={**grade.info, "altered": altered}))
    return grades


def _statement(prompt: Prompt) -> list[int]:
    return [*sorted(prompt.answer[:3]), prompt.answer[3]]


def path_scores(prompt: Prompt, text: str) -> list[StepScore]:
    """The steps of `equation_scores`. The score is 1 if an attempt that reaches the target begins
    with the words up to the step's end, else 0: a correct equation may not help."""
    *numbers, target = prompt.answer
    ways = [attempt.text for attempt in legal_attempts(*numbers) if attempt.value == target]
    scored = []
    for step in equation_scores(prompt, text):
        attempt = text[: step.end].rpartition(";")[2].split()
        begun = any(way.split()[: len(attempt)] == attempt for way in ways)
        scored.append(StepScore(step.end, float(begun)))
    return scored


def read_problem(prompt: Prompt, text: str) -> Prompt | None:
    """The problem that an attempt states: its three numbers and its result.

    A brackets verifier needs only the question, so the problem inherits no answer. If the attempt
    misses its target, the problem is another one, which may be out of reach.

    Args:
      prompt: the prompt of the attempt.
      text: a response, of which the last attempt counts, such as "( 5 + 2 = 7 ) * 4 = 28".
    Returns:
      None if the text has no attempt of either form, or numbers that no prompt has.
    """
    del prompt
    words = text.split(";")[-1].split()
    shapes = ("( n s n = n ) s n = n", "n s ( n s n = n ) = n")
    form = " ".join("n" if w.isdigit() else "s" if w in {"+", "-", "*"} else w for w in words)
    if form not in shapes:
        return None
    numbers = [int(word) for word in words if word.isdigit()]
    first, second, third = numbers[0], numbers[1], numbers[3 if words[0] == "(" else 2]
    chosen = [first, second, third]
    if not all(1 <= number <= LARGEST_OPERAND for number in chosen) or numbers[-1] > LARGEST_VALUE:
        return None
    return problem_of(chosen, numbers[-1])


def with_hint(prompt: Prompt, hint: str) -> str:
    """The text of a prompt with a hint, such as the first words of a solution.

    Args:
      hint: words of the vocabulary. `?`, `@`, `>` and `.`, which a policy could write, are left
        out. If nothing remains, the text is the prompt's.
    Raises:
      ValueError: a word is not in the vocabulary, or the prompt already has a hint.
    """
    return _shown("with_hint", prompt, HINT, hint, before=(ANSWER, END))


def with_answer(prompt: Prompt, answer: str) -> str:
    """The text of a prompt with an answer, correct or incorrect.

    Args:
      answer: words of the vocabulary, as those of `with_hint`; one or two attempts.
    Raises:
      ValueError: a word is not in the vocabulary, or the prompt already has an answer.
    """
    return _shown("with_answer", prompt, ANSWER, answer, before=(END,))


def _shown(name: str, prompt: Prompt, mark: str, text: str, before: tuple[str, ...]) -> str:
    """The prompt's text with mark and text in front of the first of the marks `before`."""
    words = [word for word in text.split() if word not in _MARKS]
    unknown = [word for word in words if word not in VOCABULARY]
    if unknown:
        raise ValueError(
            f"{name}: {name.removeprefix('with_')} must be of the words of brackets, got"
            f" {unknown[0]!r} in {text!r}"
        )
    question = prompt.text.split()
    if mark in question or END not in question:
        raise ValueError(
            f"{name}: prompt must be one of brackets without {mark!r}, got {prompt.text!r}"
        )
    if not words:
        return prompt.text
    place = next(index for index, word in enumerate(question) if word in before)
    return " ".join([*question[:place], mark, *words, *question[place:]])
