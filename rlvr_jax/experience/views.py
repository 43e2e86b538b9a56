"""Views: what of a prompt the policy is shown."""

from __future__ import annotations

import zlib

import numpy as np

from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.objectives import describe
from rlvr_jax.objectives.arguments import check_within
from rlvr_jax.tasks import Prompt, Task

__all__ = ["begin_with", "hide_words", "hint", "solution_prefix"]

SENTENCE = "\n\nThe first part of a solution, which you may use:\n"


def solution_prefix(prompt: Prompt, fraction: float, characters: bool = False) -> str:
    """The first words (or characters) of a prompt's worked solution, their number rounded.

    Args:
      fraction: of the whole, in [0, 1].
    """
    text = "".join(prompt.solution)
    parts = list(text) if characters else text.split(" ")
    return ("" if characters else " ").join(parts[: round(fraction * len(parts))])


def hint(fraction: float, characters: bool = False) -> View:
    """Shows the first part of the worked solution beside the prompt.

    As the task says (`Task.show_hint`), else in a sentence behind the prompt's text.

    Args:
      fraction: of the solution, in (0, 1].
      characters: cut anywhere, and not between words.
    Raises:
      ValueError: fraction outside (0, 1].
    """
    check_within(0, 1, "hint", fraction=fraction)

    def show(prompt: Prompt, task: Task) -> Shown:
        text = solution_prefix(prompt, fraction, characters)
        if task.show_hint is not None:
            return Shown(task.show_hint(prompt, text))
        return Shown(f"{prompt.text}{SENTENCE}{text}")

    how = f"{fraction:g}, characters" if characters else f"{fraction:g}"
    return View(f"hint({how})", show, frozenset({"solution"}), fraction)


def begin_with(fraction: float, trained: bool = False, whole_steps: bool = False) -> View:
    """Lets the response begin with the first part of the worked solution.

    Args:
      fraction: of the solution's tokens, in [0, 1], their number rounded.
      trained: they are learned from as if the policy had drawn them; else they are context only.
      whole_steps: of the solution's steps, and not of its tokens.
    Raises:
      ValueError: fraction outside [0, 1].
    """
    check_within(0, 1, "begin_with", fraction=fraction)

    def show(prompt: Prompt, task: Task) -> Shown:
        del task
        steps = prompt.solution
        if whole_steps:
            return Shown(prompt.text, "".join(steps[: round(fraction * len(steps))]), trained)
        return Shown(prompt.text, "".join(steps), trained, fraction)

    named = {"trained": trained, "whole_steps": whole_steps}
    label = describe("begin_with", fraction=fraction, **{k: v for k, v in named.items() if v})
    return View(label, show, frozenset({"solution"}), fraction)


def hide_words(share: float, filler: str) -> View:
    """Shows a prompt with some of its words hidden, so that what it asks about is not to be seen.

    Which words is a function of the prompt's text; the last word stays, for it may be what a
    response is expected behind.

    Args:
      share: of the words, each by itself, in [0, 1].
      filler: stands in the place of a hidden word; the policy's tokenizer must know it.
    Raises:
      ValueError: share outside [0, 1], or no filler.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"hide_words: share must be in [0, 1], got {share}")
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

    return View(f"hide_words({share:g}, {filler!r})", show)
