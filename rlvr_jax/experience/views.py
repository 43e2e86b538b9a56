"""Views: what of a prompt the policy is shown."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.tasks.hints import augment, gives_away, leaks
from rlvr_jax.types.hyperparameters import Count, Unit
from rlvr_jax.types.parts import part

__all__ = [
    "augmented",
    "begin_with",
    "begin_with_flaw",
    "begin_with_most",
    "guidance",
    "hide_words",
    "hint",
    "showing",
    "solution_prefix",
    "with_answer",
    "with_note",
    "with_reference",
    "with_two_answers",
    "written_hint",
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
    Raises:
      ValueError: fraction outside (0, 1].
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = solution_prefix(prompt, fraction, characters)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, text))
        return Shown(f"{prompt.text}{SENTENCE}{text}")

    return View(show, frozenset({"solution"}), fraction)


@part
def written_hint() -> View:
    """Shows the first hint of a prompt (`Prompt.hints`), if it does not give the answer away.

    As the task says (`Task.show_hint`), else in a sentence behind the prompt's text. What says the
    answer is `rlvr_jax.tasks.hints.answer_texts`.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = prompt.hints[0]
        if gives_away(text, prompt):
            return Shown(prompt.text)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, text))
        return Shown(f"{prompt.text}{NOTE}{text}")

    return View(show, frozenset({"hints"}))


@part
def guidance(words: Count = 8) -> View:
    """Shows all hints of a prompt, in order, unless they give its solution away (`leaks`).

    As the task says (`Task.show_hint`), else in a sentence behind the prompt's text. The solution
    is the worked one, or the gold response where there is none. A prompt whose hints are not used
    is shown as it is.

    Args:
      words: of the solution, one after the other, that may not stand in the hints.
    Raises:
      ValueError: fewer than one word.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        text = "\n".join(prompt.hints)
        solution = "".join(prompt.solution) or str(prompt.gold or "")
        if leaks(text, solution, words):
            return Shown(prompt.text)
        return with_note(text).show(prompt, task)

    return View(show, frozenset({"hints"}))


@part
def augmented(fraction: Unit) -> View:
    """Shows the first characters of the worked solution, as QuestA writes it (`augment`).

    As the task says (`Task.show_hint`), if it does. A prompt whose solution does not hold its
    answer, or whose hint would, is shown as it is.

    Args:
      fraction: of the solution's characters, in [0, 1].
    Raises:
      ValueError: fraction outside [0, 1].
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        solution = "".join(prompt.solution)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, solution[: int(fraction * len(solution))]))
        answer = str(prompt.answer)
        return Shown(augment(prompt.text, solution, answer, fraction) or prompt.text)

    return View(show, frozenset({"solution"}), fraction)


@part
def begin_with(fraction: Unit, trained: bool = False, whole_steps: bool = False) -> View:
    """Lets the response begin with the first part of the worked solution.

    Args:
      fraction: of the solution's tokens, in [0, 1], their number rounded.
      trained: they are learned from as if the policy had drawn them; else they are context only.
      whole_steps: of the solution's steps, and not of its tokens.
    Raises:
      ValueError: fraction outside [0, 1].
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
def begin_with_flaw(kind: str) -> View:
    """Lets the response begin with a worked solution up to a planted error, which nobody learns.

    It is `Prompt.meta["flawed"][kind]`; a prompt without one is shown as it is.

    Args:
      kind: of the error, such as "calculation".
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        del task
        return Shown(prompt.text, prompt.meta.get("flawed", {}).get(kind, ""))

    return View(show, frozenset({"meta"}))


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


@part
def hide_words(share: Unit, filler: str) -> View:
    """Shows a prompt with some of its words hidden, so that what it asks about is not to be seen.

    Which words is a function of the prompt's text; the last word stays, for it may be what a
    response is expected behind.

    Args:
      share: of the words, each by itself, in [0, 1].
      filler: stands in the place of a hidden word; the policy's tokenizer must know it.
    Raises:
      ValueError: share outside [0, 1], or no filler.
    """
    if not filler:
        raise ValueError(f"hide_words: filler must be a text, got {filler!r}")

    def show(prompt: Prompt, task: Task) -> Shown:
        del task
        words = prompt.text.split(" ")
        random = np.random.default_rng(zlib.crc32(prompt.text.encode()))
        hidden = random.uniform(size=len(words)) < share
        hidden[-1] = False
        told = (filler if out else word for word, out in zip(words, hidden, strict=True))
        return Shown(" ".join(told))

    return View(show)
