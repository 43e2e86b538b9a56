"""Views: what of a prompt the policy is shown."""

from dataclasses import replace

from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = [
    "begin_with",
    "begin_with_most",
    "hint",
    "showing",
    "solution_prefix",
    "with_answer",
    "with_note",
    "with_reference",
    "with_two_answers",
]

SOLVED = "\n\nThis is a right answer:\n"
FAILED = "\n\nThis is a wrong answer:\n"
# Without it SmolLM2-135M talks about the answer: .10 of its own answers to hard sums are right
# then, with it .19 (.02 where it sees none; 48 sums, 8 answers to each).
YOUR_TURN = "\n\nNow answer the question yourself."
NOTE = "\n\nWhat may help:\n"
SENTENCE = "\n\nThe first part of a solution, which you may use:\n"


def solution_prefix(prompt: Prompt, fraction: float, characters: bool = False) -> str:
    """The first words (or characters) of a prompt's worked solution, their number rounded.

    Args:
      fraction: of the whole, in [0, 1].
    """
    text = "".join(prompt.solution)
    parts = list(text) if characters else text.split(" ")
    return ("" if characters else " ").join(parts[: round(fraction * len(parts))])


@part
def hint(fraction: Unit, characters: bool = False) -> View:
    """Shows the first part of the worked solution beside the prompt.

    As the task says (`Task.show_hint`), else in a sentence behind the prompt's text.

    Args:
      fraction: of the solution, in (0, 1].
      characters: cut anywhere, and not between words.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = solution_prefix(prompt, fraction, characters)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, text))
        return Shown(f"{prompt.text}{SENTENCE}{text}")

    return View(show, frozenset({"solution"}), fraction)


@part
def begin_with(fraction: Unit, trained: bool = False, whole_steps: bool = False) -> View:
    """Lets the response begin with the first part of the worked solution.

    Args:
      fraction: of the solution's tokens, in [0, 1], their number rounded.
      trained: they are learned from as if the policy had drawn them; else they are context only.
      whole_steps: of the solution's steps, and not of its tokens.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        del task
        steps = prompt.solution
        if whole_steps:
            return Shown(prompt.text, "".join(steps[: round(fraction * len(steps))]), trained)
        return Shown(prompt.text, "".join(steps), trained, fraction)

    return View(show, frozenset({"solution"}), fraction)


@part
def begin_with_most(trained: bool = False) -> View:
    """Lets the response begin with all steps of the worked solution but the last.

    Args:
      trained: as of `begin_with`.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        del task
        return Shown(prompt.text, "".join(prompt.solution[:-1]), trained)

    return View(show, frozenset({"solution"}), 1.0)


@part
def with_answer(answer: str) -> View:
    """Shows somebody's answer beside the prompt, which is still to be answered.

    As the task says (`Task.show_answer`), else in a sentence behind the prompt's text, and one that
    asks for an answer of the policy's own.

    Args:
      answer: right, as far as the sentence is concerned.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        if task.show_answer is not None:
            return Shown(task.show_answer(prompt, answer))
        return Shown(f"{prompt.text}{SOLVED}{answer}{YOUR_TURN}")

    return View(show)


@part
def with_reference() -> View:
    """Shows the prompt's own right answer beside it, as `with_answer`: its gold response, or its
    answer where there is none."""

    def show(prompt: Prompt, task: Task) -> Shown:
        answer = str(prompt.answer if prompt.gold is None else prompt.gold)
        return with_answer(answer).show(prompt, task)

    return View(show, fraction=1.0)


@part
def with_note(note: str) -> View:
    """Shows a text that is to help beside the prompt.

    As the task shows hints (`Task.show_hint`), else in a sentence behind the prompt's text.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, note))
        return Shown(f"{prompt.text}{NOTE}{note}")

    return View(show)


@part
def with_two_answers(right: str, wrong: str, request: str = "") -> View:
    """Shows a right and a wrong answer beside the prompt, and what is asked about them.

    Where the task shows hints and answers, the right one is the hint and the wrong one the answer,
    and the request is left out; else they stand in sentences behind the prompt's text.

    Args:
      request: such as what to write about them.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        if task.show_hint is not None and task.show_answer is not None:
            hinted = replace(prompt, text=task.show_hint(prompt, right))
            return Shown(task.show_answer(hinted, wrong))
        return Shown(f"{prompt.text}{SOLVED}{right}{FAILED}{wrong}\n\n{request}".rstrip())

    return View(show)


@part
def showing(text: str) -> View:
    """Shows a text in the place of the prompt."""

    def show(prompt: Prompt, task: Task) -> Shown:
        del prompt, task
        return Shown(text)

    return View(show)
