"""Problems that a policy writes: how it is asked for them, and how they are read and asked."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.asks import PLAIN, Ask, Shown, View
from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Actor, Turn
from rlvr_jax.tasks import Grade, Prompt, Task
from rlvr_jax.types.parts import part
from rlvr_jax.verifiers.fences import last_fence

__all__ = [
    "WRITTEN",
    "asks_of_problems",
    "earned",
    "kept_groups",
    "mixed",
    "pass_rates",
    "problem_in",
    "read_problems",
    "with_request",
]

SOLVE, WRITE = 0, 1
"""Cells of rows: who solves, and who writes."""


WRITTEN = replace(PLAIN, responses=1)
"""Of parts that ask what a policy has written: it is a prompt that a response makes longer."""


@part
def with_request(request: str, material: str, prompt_shown: bool = True) -> View:
    """Shows what a new text is to be made of, and what is wanted.

    A task that shows answers in its own way (`Task.show_answer`) does so, and says nothing more;
    else the prompt, the material and the request stand in this order.

    Args:
      material: an answer, or another problem.
      prompt_shown: the prompt stands before it, where the task has no way of its own.
    """

    def show(prompt: Prompt, task: Task) -> Shown:
        if task.show_answer is not None:
            return Shown(task.show_answer(prompt, material))
        first = [prompt.text] if prompt_shown else []
        return Shown("\n\n".join(text for text in [*first, material, request] if text))

    return View(show)


def problem_in(prompt: Prompt, text: str, task: Task) -> Prompt | None:
    """The problem that a text states, with the answer of the prompt it was made from; None if there
    is none, or if it is one of those that are held out."""
    if task.read_problem is not None:
        found = task.read_problem(prompt, text)
    else:
        stated = (last_fence(text, "text") or "").strip()
        bare = {"gold": None, "solution": (), "hints": (), "meta": {}}
        found = replace(prompt, text=stated, **bare) if stated else None
    held_out = found is not None and found.text in _held_out(task)
    return None if held_out else found


def _held_out(task: Task) -> set[str]:
    return {prompt.text for prompt in task.test}


def read_problems(batch: Batch, actor: Actor, turn: Turn) -> list[Prompt | None]:
    """The problem that each row states, if it does; a response that was cut off states none, nor
    does one whose problem is longer than its prompt by more than the budget of a response: there
    would be no room for it (`WRITTEN`)."""
    task, budget = turn.setting.task, turn.setting.response_tokens
    found: list[Prompt | None] = []
    for ask, response in zip(batch.asks, batch.responses, strict=True):
        problem = None
        if not response.truncated:
            problem = problem_in(ask.prompt, response.text, task)
        if problem is not None:
            longer = len(actor.encode(problem.text)) - len(actor.encode(ask.prompt.text))
            problem = problem if longer <= budget else None
        found.append(problem)
    return found


def asks_of_problems(
    problems: Sequence[Prompt], cells: Sequence[int], samples: int, task: Task, first: int = 0
) -> list[Ask]:
    """Asks for problems that a run has made, numbered behind the prompts of its task.

    Args:
      cells: labels of their rows.
      samples: responses to each.
      first: how many problems of the step have numbers already.
    """
    start = len(task.train) + first
    return [
        Ask(problem, start + place, samples, PLAIN, cell=cell)
        for place, (problem, cell) in enumerate(zip(problems, cells, strict=True))
    ]


def mixed(outcomes: np.ndarray) -> np.ndarray:
    """Groups whose mean outcome is strictly between 0 and 1, bool [G]."""
    known = ~np.isnan(outcomes)
    mean = np.nansum(outcomes, axis=1) / np.maximum(known.sum(axis=1), 1)
    return (mean > 0) & (mean < 1)


def pass_rates(outcomes: np.ndarray) -> np.ndarray:
    """Mean outcome of each group, [G]; 0 without a verdict."""
    known = ~np.isnan(outcomes)
    return np.nansum(outcomes, axis=1) / np.maximum(known.sum(axis=1), 1)


def kept_groups(batch: Batch, groups: np.ndarray) -> Batch | None:
    """Some of the groups; None of none.

    Args:
      groups: bool [G].
    """
    rows = [rows for rows, there in zip(batch.groups, groups, strict=True) if there]
    return batch.take(np.concatenate(rows)).renumbered() if rows else None


def earned(batch: Batch, reward: np.ndarray, cell: int) -> Batch:
    """Rows that wrote something, with what that has earned as reward and, within [0, 1], as
    outcome: a penalty is an outcome of 0.

    Args:
      reward: [B]; NaN: nobody can say.
      cell: their label.
    """
    told = np.nan_to_num(reward).astype(batch.rollouts.outcome.dtype)
    outcome = np.clip(told, 0, 1)
    grades = [
        Grade(None) if unknown else Grade(float(o), float(r))
        for unknown, o, r in zip(np.isnan(reward), outcome, told, strict=True)
    ]
    cells = np.full(len(batch), cell, np.int32)
    return replace(batch.with_rollouts(outcome=outcome, reward=told, cell=cells), grades=grades)


REQUEST = (
    "This is a solution of a problem that you do not see. Write a problem that it solves, with the"
    " same answer, between ```text and ```."
)
