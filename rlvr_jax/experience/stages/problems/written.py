"""Problems that a policy writes: requests, reading and sampling of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import StepContext
from rlvr_jax.experience.requests import PLAIN, SampleRequest, ShownPrompt, View
from rlvr_jax.experience.stages.choices.groups import pass_rates
from rlvr_jax.experience.store import as_bytes, as_texts
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.types.parts import part
from rlvr_jax.verifiers.fences import last_fence

__all__ = [
    "WRITTEN",
    "accepted_groups",
    "earned",
    "mixed",
    "pass_rates",
    "problem_in",
    "read_problems",
    "read_stored",
    "requests_of_problems",
    "stored",
    "with_request",
]

SOLVE, WRITE = 0, 1
"""Cells of rows that solve a problem, and of rows that write one."""

WRITTEN = replace(PLAIN, responses=1)
"""View of written problems: the prompt may be longer by the length of a response."""


BYTES = 2048
"""Size of a stored problem; longer ones are not stored."""


@part
def with_request(
    request: str,
    material: str,
    prompt_shown: bool = True,
    reader: Literal["read_problem", "read_reflection"] = "read_problem",
) -> View:
    """Shows material for a new text, and the request.

    If the task has `Task.show_answer`, the material is shown in that form. If it also has the
    reader, which reads an answer to this form as such a text, the form is the request. Otherwise
    the request follows in words. Without forms, prompt, material and request follow each other.

    Args:
      request: text that asks for the new problem.
      material: a response, or another problem.
      prompt_shown: the prompt comes first.
      reader: field of the task that reads the text.
    """

    def show(prompt: Prompt, task: Task) -> ShownPrompt:
        if task.show_answer is not None:
            shown = task.show_answer(prompt, material)
            reads = getattr(task, reader) is not None
            return ShownPrompt(shown if reads else f"{shown}\n\n{request}")
        first = [prompt.text] if prompt_shown else []
        return ShownPrompt("\n\n".join(text for text in [*first, material, request] if text))

    return View(show)


def problem_in(prompt: Prompt, text: str, task: Task) -> Prompt | None:
    """The problem in a text, with its prompt's answer; None if there is none or it is held out."""
    if task.read_problem is not None:
        found = task.read_problem(prompt, text)
    else:
        stated = (last_fence(text, "text") or "").strip()
        bare = {"gold": None, "solution": (), "hints": (), "meta": {}}
        found = replace(prompt, text=stated, **bare) if stated else None
    held_out = found is not None and any(found.text == prompt.text for prompt in task.test)
    return None if held_out else found


def read_problems(
    batch: Batch, encode: Callable[[str], Sequence[int]], turn: StepContext
) -> list[Prompt | None]:
    """The problem in each row; None for truncated responses, and for problems that do not fit.

    A problem may be longer than its prompt by the budget of a response (`WRITTEN`).

    Args:
      encode: (text) -> tokens, such as `Actor.encode`.
    """
    task, budget = turn.setting.task, turn.setting.response_tokens
    found: list[Prompt | None] = []
    for request, response in zip(batch.requests, batch.responses, strict=True):
        text = response.text
        problem = None if response.truncated else problem_in(request.prompt, text, task)
        if problem is not None:
            longer = len(encode(problem.text)) - len(encode(request.prompt.text))
            problem = problem if longer <= budget else None
        found.append(problem)
    return found


def requests_of_problems(
    problems: Sequence[Prompt], cells: Sequence[int], samples: int, task: Task, first: int = 0
) -> list[SampleRequest]:
    """Requests for written problems, with numbers after those of the task's prompts.

    Args:
      problems: the written problems.
      cells: labels of their rows.
      samples: responses to each problem.
      task: the task of the run.
      first: how many problems of the step already have numbers.
    """
    start = len(task.train) + first
    return [
        SampleRequest(problem, start + place, samples, PLAIN, cell=cell)
        for place, (problem, cell) in enumerate(zip(problems, cells, strict=True))
    ]


def stored(problems: Sequence[Prompt]) -> np.ndarray:
    """Problems (text, answer, kind) as rows of bytes, uint8 [n, BYTES]; zeros if longer."""
    return as_bytes([json.dumps([p.text, p.answer, p.kind]) for p in problems], BYTES)


def read_stored(rows: np.ndarray) -> list[Prompt]:
    """The problems of `stored`."""
    return [Prompt(*json.loads(line)) for line in as_texts(rows)]


def mixed(outcomes: np.ndarray) -> np.ndarray:
    """Groups whose mean outcome is strictly between 0 and 1, bool [G]."""
    rates = pass_rates(outcomes)
    return (rates > 0) & (rates < 1)


def accepted_groups(batch: Batch, groups: np.ndarray) -> Batch | None:
    """The chosen groups (bool [G]), None without any."""
    rows = [rows for rows, there in zip(batch.groups, groups, strict=True) if there]
    return batch.take(np.concatenate(rows)).renumbered() if rows else None


def earned(batch: Batch, reward: np.ndarray, cell: int) -> Batch:
    """Rows that wrote a text, with its reward; the outcome is the reward limited to [0, 1].

    Args:
      reward: [B]; NaN: ungraded.
      cell: their label.
    """
    known = np.nan_to_num(reward).astype(batch.rollouts.outcome.dtype)
    outcome = np.clip(known, 0, 1)
    grades = [
        Grade(None) if unknown else Grade(float(o), float(r))
        for unknown, o, r in zip(np.isnan(reward), outcome, known, strict=True)
    ]
    cells = np.full(len(batch), cell, np.int32)
    return batch.graded(grades).with_rollouts(cell=cells)


REQUEST = (
    "This is a solution of a problem that you do not see. Write a problem that it solves, with the"
    " same answer, between ```text and ```."
)
