"""Views: the text that the policy sees of a prompt."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rlvr_jax.experience.prompts import encode_text
from rlvr_jax.experience.requests import ShownPrompt, View
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

SOLVED = "\n\nThis is a right answer:\n"
FAILED = "\n\nThis is a wrong answer:\n"
# Without it SmolLM2-135M comments on the answer. Correct responses to hard sums (48 sums, 8
# responses each): 0.19 with it, 0.10 without it, and 0.02 without an answer.
YOUR_TURN = "\n\nNow answer the question yourself."
NOTE = "\n\nWhat may help:\n"
SENTENCE = "\n\nThe first part of a solution, which you may use:\n"


def solution_prefix(prompt: Prompt, fraction: float, characters: bool = False) -> str:
    """The first words (or characters) of a prompt's worked solution, a rounded number of them."""
    text = "".join(prompt.solution)
    parts = list(text) if characters else text.split(" ")
    return ("" if characters else " ").join(parts[: round(fraction * len(parts))])


def _shown(
    prompt: Prompt, by_task: Callable[[Prompt, str], str] | None, text: str, plainly: str
) -> ShownPrompt:
    """The prompt with a text in the task's form; if the task has none, the prompt and `plainly`."""
    return ShownPrompt(by_task(prompt, text) if by_task is not None else f"{prompt.text}{plainly}")


@part(reads={"solution"})
def hint(fraction: Unit, characters: bool = False) -> View:
    """Shows the first part of the worked solution after the prompt.

    The form is that of `Task.show_hint`; without it, a sentence introduces the text.

    Args:
      fraction: fraction of the solution, in (0, 1].
      characters: the end may be inside a word.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        text = solution_prefix(prompt, fraction, characters)
        return _shown(prompt, task.show_hint, text, SENTENCE + text)

    return View(show, fraction=fraction)


@part(reads={"solution"})
def begin_with(fraction: Unit, trained: bool = False, whole_steps: bool = False) -> View:
    """Begins the response with the first part of the worked solution.

    Args:
      fraction: fraction of the solution's tokens; their number is rounded.
      trained: train these tokens like sampled ones; otherwise they are only context.
      whole_steps: the fraction is of the solution's steps, not of its tokens.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        steps = prompt.solution
        if whole_steps:
            return ShownPrompt(prompt.text, "".join(steps[: round(fraction * len(steps))]), trained)
        return ShownPrompt(prompt.text, "".join(steps), trained, fraction)

    return View(show, fraction=fraction)


@part(reads={"solution"}, fraction=1.0)
def begin_with_most(trained: bool = False) -> View:
    """Begins the response with all steps of the worked solution except the last.

    Args:
      trained: as for `begin_with`.
    """
    return lambda prompt, task: ShownPrompt(prompt.text, "".join(prompt.solution[:-1]), trained)


@part
def with_answer(answer: str) -> View:
    """Shows an answer, called correct, after the prompt that the policy has to answer.

    The form is that of `Task.show_answer`; without it, a sentence and a request for an answer.
    """
    plainly = f"{SOLVED}{answer}{YOUR_TURN}"
    return lambda prompt, task: _shown(prompt, task.show_answer, answer, plainly)


@part(fraction=1.0)
def with_reference() -> View:
    """Shows the prompt's gold response (else its answer), in the form of `with_answer`."""

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        answer = str(prompt.answer if prompt.gold is None else prompt.gold)
        return with_answer(answer).show(prompt, task)

    return show


@part
def with_note(note: str) -> View:
    """Shows a helpful text after the prompt, by `Task.show_hint` or between two sentences."""
    plainly = f"{NOTE}{note}{YOUR_TURN}"
    return lambda prompt, task: _shown(prompt, task.show_hint, note, plainly)


@part
def with_two_answers(correct: str, incorrect: str, request: str = "") -> View:
    """Shows a correct and an incorrect answer after the prompt, and a request for a better answer.

    If the task has forms for hints and answers, the correct answer is shown as the hint and the
    incorrect one as the answer. These forms request an answer, so the words of `request` are not
    shown. Otherwise a sentence introduces each answer. For a text that is not an answer, see
    `requesting`.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        if task.show_hint is not None and task.show_answer is not None:
            hinted = replace(prompt, text=task.show_hint(prompt, correct))
            return ShownPrompt(task.show_answer(hinted, incorrect))
        return ShownPrompt(
            f"{prompt.text}{SOLVED}{correct}{FAILED}{incorrect}\n\n{request}".rstrip()
        )

    return show


@part
def requesting(view: View, request: str) -> View:
    """Shows a prompt in a view, and then requests a text that is not an answer.

    The forms of a task (`Task.show_hint`, `Task.show_answer`) request answers only, so the request
    is always written in words. A run does not start with a policy that cannot read them.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        shown = view.show(prompt, task)
        return shown._replace(text=f"{shown.text}\n\n{request}")

    return replace(view, show=show)


@part
def showing(text: str) -> View:
    """Shows a text instead of the prompt."""
    return lambda prompt, task: ShownPrompt(text)


def check_openings(tokenizer: Any, seen: Sequence[ShownPrompt], budget: int, where: str) -> None:
    """Raises if a response would begin with all tokens of its budget in a view.

    Args:
      tokenizer: a tokenizer of transformers.
      seen: each prompt as the view shows it.
      budget: tokens of a response.
      where: split and view, for errors.
    """
    known: dict[tuple[str, float], int] = {}
    for one in seen:
        if (one.opening, one.fraction) not in known:
            known[one.opening, one.fraction] = len(one.prefill(partial(encode_text, tokenizer)))
    lengths = [known[one.opening, one.fraction] for one in seen]
    if max(lengths) >= budget:
        long = sum(length >= budget for length in lengths)
        text = seen[lengths.index(max(lengths))].text
        raise ValueError(
            f"{where}: responses must begin with fewer than the {budget} tokens of their budget,"
            f" got up to {max(lengths)} for {long} of {len(seen)} prompts, such as {text[:80]!r}."
            " Leave these prompts out, or increase --response-tokens"
        )
