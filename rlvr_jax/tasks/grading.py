"""Grading: the grades of a task's `verify`, and messages if it fails.

A reward is often the newest code of a run. Its errors are reported with the prompt and the response
that caused them, and the line in the user's file.
"""

import functools
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rlvr_jax.tasks.base import Prompt, Response, Task, Verify
from rlvr_jax.tools.slips import own_place, where_raised
from rlvr_jax.verifiers.grade import Grade


class GradingError(ValueError):
    """A `verify` raised, or did not return grades; no training step has used them."""


def grades_of(task: Task, prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
    """Grades responses[i] as an answer to prompts[i] by the task's verifier.

    Raises:
      GradingError: `verify` raises, or does not return one grade per response. The message names
        the first response for which it also raises alone.
    """
    try:
        given = task.verify(prompts, responses)
        grades: list[Any] = list(given) if isinstance(given, Iterable) else [given]
    except GradingError:
        raise
    except (Exception, SystemExit) as error:
        raise GradingError(_blame(task, prompts, responses, error)) from error
    for grade in grades:
        if not isinstance(grade, Grade):
            raise GradingError(
                f"task {task.name!r}: verify must return one Grade per response, got {grade!r}."
                " Use graded_one_by_one, from_trl or from_verl to make a verify of functions that"
                " return numbers"
            )
    if len(grades) != len(responses):
        raise GradingError(
            f"task {task.name!r}: verify must return one grade per response ({len(responses)}),"
            f" got {len(grades)}"
        )
    return grades


def one_by_one(grade: Callable[..., Grade]) -> Callable[..., list[Grade]]:
    """Makes the `verify` of a task from a function that grades one response.

    Args:
      grade: (…, prompt, response) -> the grade; `verify` takes the same first arguments.
    """

    @functools.wraps(grade)
    def verify(*arguments: Any) -> list[Grade]:
        *given, prompts, responses = arguments
        return [grade(*given, *pair) for pair in zip(prompts, responses, strict=True)]

    return verify


def no_verdict_on_error(verify: Verify) -> Verify:
    """Makes a response ungraded if its grading raises: it leaves the loss and its group.

    A batch that raises is graded again response by response, so `verify` must not count its calls.
    """

    def tolerant(prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        try:
            return list(verify(prompts, responses))
        except (Exception, SystemExit):
            if len(prompts) == 1:
                return [Grade(None, stage="raised")]
        pairs = zip(prompts, responses, strict=True)
        return [tolerant([prompt], [response])[0] for prompt, response in pairs]

    tolerant.verifier = verifier_name(verify)
    tolerant.rewards = getattr(verify, "rewards", ())
    return tolerant


def verifier_name(verify: Callable) -> str:
    """The grader's name for people: of a check or of a reward, or of the function itself."""
    named = verify if hasattr(verify, "__qualname__") else type(verify)
    return getattr(verify, "verifier", f"{named.__module__}:{named.__qualname__}")


def shortened(text: str, length: int = 200) -> str:
    """A text for a sentence: quoted, without its middle if it is long."""
    if len(text) > length:
        text = f"{text[: length // 2]} … {text[-length // 2 :]}"
    return repr(text)


def _blame(
    task: Task, prompts: Sequence[Prompt], responses: Sequence[Response], error: BaseException
) -> str:
    """A sentence about the exception and its response."""
    where = f"for one of {len(responses)} responses"
    for prompt, response in zip(prompts, responses, strict=True):
        try:
            list(task.verify([prompt], [response]))
        except (Exception, SystemExit) as alone:
            error = alone
            where = f"for prompt {shortened(prompt.text)} and response {shortened(response.text)}"
            break
    place = own_place(error) or traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"task {task.name!r}: verify raised {where_raised(error, place)} {where}."
        " --failed-grades no_verdict (no_verdict_on_error(verify)) counts it as ungraded"
    )
