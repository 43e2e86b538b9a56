"""Templates: one question in several words, each with a form that its answers are to have."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.types.parts import part

__all__ = ["TEMPLATES", "Template", "format_score", "template_of", "template_view"]

QUESTION = "{question}"
BOXED = "Put your final answer within \\boxed{}."
SENTENCE = "Let's think step by step."
LINES = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
CHECKED = (
    *("<solution>\n", "\n</solution>\n"),
    *("<check>\nLet's verify step by step", "\n</check>"),
)
FINAL = ("The final answer is:",)


class Template(NamedTuple):
    """A way to ask.

    Fields:
      name: of the view.
      text: what is shown, with {question} for the prompt's text.
      opening: what the response begins with; it is given and not learned from.
      required: texts each of which is to occur exactly once in the response.
      whole: the score is 1 if all do, else 0; else the share of those that do.
    """

    name: str
    text: str = QUESTION
    opening: str = ""
    required: tuple[str, ...] = ()
    whole: bool = False

    @property
    def label(self) -> str:
        """Its name, for labels of parts."""
        return self.name


_LINES = (
    f"{QUESTION}\n\nReason between <think> and </think>, then answer between <answer> and"
    " </answer>, each tag on a line of its own."
)
_TAGS = f"{QUESTION}\n\nThink first: <think>reasoning</think><answer>answer</answer>."
_CHECKED = (
    f"{QUESTION}\n\nWrite <solution>, a line break, your solution and </solution>; then <check>, a"
    " line that begins with Let's verify step by step, and </check>."
)

TEMPLATES = (
    Template("box_behind", f"{QUESTION}\n\n{BOXED}"),
    Template("box_before", f"{BOXED}\n\n{QUESTION}"),
    Template("begun", f"{QUESTION}\n\n{BOXED}", opening=f"{SENTENCE}\n"),
    Template("lines", _LINES, required=LINES),
    Template("lines_begun", _LINES, opening=LINES[0], required=LINES[1:]),
    Template("tags", _TAGS, required=TAGS),
    Template("tags_begun", _TAGS, opening=TAGS[0], required=TAGS[1:]),
    Template("formal", f"Problem. {QUESTION}\n\nGive a formal derivation. {BOXED}"),
    Template(
        "final_line",
        f"{QUESTION}\n\nSolve it in numbered steps. End with: The final answer is:",
        required=FINAL,
        whole=True,
    ),
    Template("numbered", f"{QUESTION}\n\nNumber your steps 1., 2., 3. and so on. {BOXED}"),
    Template(
        "final_sentence",
        f"Problem: {QUESTION}\n\nSolution, closed by the words The final answer is: and the answer",
        required=FINAL,
        whole=True,
    ),
    Template("checked", _CHECKED, required=CHECKED),
    Template("checked_begun", _CHECKED, opening=CHECKED[0], required=CHECKED[1:]),
)
"""Thirteen: three with tags that are opened already; the words are ours, the tags the authors'."""


def format_score(template: Template, text: str) -> float:
    """How well a response keeps the form of its template, in [0, 1]; 1 if that asks for nothing."""
    met = [text.count(wanted) == 1 for wanted in template.required]
    if not met:
        return 1.0
    return float(all(met)) if template.whole else sum(met) / len(met)


def template_of(seed: int, epoch: int, index: int, number: int) -> int:
    """Which of `number` templates a prompt is asked in, uniform, whatever else is drawn.

    Args:
      seed: of the run.
      epoch: how often the prompt was asked before.
      index: of the prompt.
    """
    name = zlib.crc32(b"template_of")
    return int(np.random.default_rng([seed, name, epoch, index]).integers(number))


@part
def template_view(template: Template) -> View:
    """Shows a prompt in a template."""

    def show(prompt, task):
        del task
        return Shown(template.text.replace(QUESTION, prompt.text), template.opening)

    return View(show)
