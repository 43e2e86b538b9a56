"""Grades of a batch, and their numbers as arrays."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import jax
import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.prompts import continued, responses
from rlvr_jax.objectives import Objective
from rlvr_jax.parallel import gather
from rlvr_jax.tasks import Grade, GradingError, Prompt, Response, Task, grades_of
from rlvr_jax.types import replace

LARGEST = float(np.finfo(np.float32).max)


def grade(task: Task, batch: Batch) -> Batch:
    """The batch with the verifier's grades; every process grades some of the rows.

    Raises:
      GradingError: the verifier fails, or a reward or outcome is not finite.
    """
    started = time.perf_counter()
    rollouts, prompts = batch.rollouts, batch.prompts
    rows = np.array_split(np.arange(len(prompts)), jax.process_count())[jax.process_index()]
    asked = [prompts[row] for row in rows]
    texts = responses(batch.tokenizer, jax.tree.map(lambda x: x[rows], rollouts))
    texts = [continued(*pair) for pair in zip(asked, texts, strict=True)]
    grades = grades_of(task, asked, texts)
    _check_numbers(task, asked, texts, grades)
    own = {int(row): vars(one) for row, one in zip(rows, grades, strict=True)}
    known = {int(row): fields for part in gather(own) for row, fields in part.items()}
    grades = [Grade(**known[row]) for row in range(len(prompts))]
    return replace(batch.graded(grades), verify_seconds=time.perf_counter() - started)


def grade_answers(verify: Callable[[Batch], Batch], batch: Batch) -> Batch:
    """The batch with grades; only the last row of a trace is graded, for all its rows.

    Args:
      verify: (batch) -> the batch with grades, such as an actor's `grade`. It does not get rows
        whose grades are in `Batch.brought`.
    """
    if batch.brought:
        return _with_brought(verify, batch)
    if "trace" not in batch.rollouts.records:
        return verify(batch)
    last = batch.last_of_trace
    ends = np.unique(last)
    graded = verify(batch.take(ends))
    grades = [graded.grades[row] for row in np.searchsorted(ends, last)]
    return replace(batch.graded(grades), verify_seconds=graded.verify_seconds)


def _with_brought(verify: Callable[[Batch], Batch], batch: Batch) -> Batch:
    """The batch with the grades of `Batch.brought`, and the verifier's grades of the other rows."""
    grades, seconds = list(batch.brought), 0.0
    plain = replace(batch, brought=())
    missing = np.array([grade is None for grade in grades])
    if missing.any():
        graded = grade_answers(verify, plain.take(np.flatnonzero(missing)))
        for row, grade in zip(np.flatnonzero(missing), graded.grades, strict=True):
            grades[row] = grade
        seconds = graded.verify_seconds
    return replace(plain.graded(grades), verify_seconds=seconds)


def _check_numbers(
    task: Task, prompts: Sequence[Prompt], texts: Sequence[Response], grades: Sequence[Grade]
) -> None:
    """Raises if a reward is not finite.

    Raises:
      GradingError: names prompt and response.
    """
    for prompt, text, grade in zip(prompts, texts, grades, strict=True):
        if grade.outcome is not None and not abs(grade.reward) <= LARGEST:
            raise GradingError(
                f"task {task.name!r}: reward must be finite in float32, got {grade.reward} for"
                f" prompt {prompt.text!r} and response {text.text!r}"
            )


def reported_numbers(grades: Sequence[Grade]) -> dict[str, np.ndarray]:
    """The numbers in the info of grades, by name: 0 for a missing number, NaN if ungraded."""
    names = sorted({name for grade in grades for name in grade.info})
    missing = [np.nan if grade.outcome is None else 0.0 for grade in grades]
    return {
        name: np.array([g.info.get(name, m) for g, m in zip(grades, missing, strict=True)])
        for name in names
    }


def unsaid(task: Task) -> dict[str, float]:
    """The info of a grade without numbers: NaN for the task's rewards except the outcome."""
    return {name: float("nan") for name in task.rewards if name != "outcome"}


def check_grades_suffice(task: Task, objective: Objective, method: str) -> None:
    """Raises if a method reads numbers that the task's grades do not have.

    Raises:
      ValueError: `with_grades` cannot fill a record of the objective, or the objective is for
        another number of rewards.
    """
    for need, given, where in (
        ("answer", task.answers, "Task.answers"),
        ("component_rewards", task.rewards, "Task.rewards"),
    ):
        if need in objective.reads and not given:
            raise ValueError(
                f"method {method!r} reads {need}, which task {task.name!r} does not have"
                f" ({where} is {given!r})"
            )
    wanted = dict(objective.records).get("component_rewards", len(task.rewards))
    if wanted != len(task.rewards):
        raise ValueError(
            f"method {method!r} must weigh the {len(task.rewards)} rewards of task {task.name!r}"
            f" ({', '.join(task.rewards)}), got weights of {wanted}"
        )


def check_task(label: str, needs: Collection[str], task: Task) -> None:
    """Raises if a task has not the fields that a part reads ("answers", "score_steps")."""
    for need in sorted({*needs} - {"rewards"}):
        if not getattr(task, need):
            raise ValueError(f"{label}: task must have Task.{need}, got {task.name!r} without it")


def with_grades(batch: Batch, task: Task, needs: Collection[str]) -> Batch:
    """The same batch with the records of grades in `needs`: `answer`, `component_rewards`.

    Responses without an answer get a negative class, each another one.

    Raises:
      ValueError: a grade lacks one of the task's rewards, or has an infinite one.
    """
    grades, known = batch.grades, {}
    if "answer" in needs:
        answers = [grade.answer for grade in grades if grade.answer is not None]
        numbers = {answer: number for number, answer in enumerate(dict.fromkeys(answers))}
        known["answer"] = np.array(
            [numbers.get(grade.answer, -1 - row) for row, grade in enumerate(grades)], np.int32
        )
    if "component_rewards" in needs:
        known["component_rewards"] = component_rewards(batch, task)
    return batch.with_rollouts(**known)


def with_info(batch: Batch, info: Iterable[Mapping[str, float]]) -> Batch:
    """The batch with further numbers in the grades of its rows."""
    pairs = zip(batch.grades, info, strict=True)
    return replace(batch, grades=[replace(one, info={**one.info, **new}) for one, new in pairs])


def component_rewards(batch: Batch, task: Task) -> np.ndarray:
    """The rewards of `Task.rewards` of each row, [B, K]; NaN if ungraded.

    Raises:
      ValueError: a grade lacks one of the task's rewards, or has an infinite one.
    """
    unknown = dict.fromkeys(task.rewards, np.nan)
    earned = [
        {**grade.info, "outcome": grade.outcome} if verdict else unknown
        for grade, verdict in zip(batch.grades, batch.decided, strict=True)
    ]
    for prompt, numbers in zip(batch.prompts, earned, strict=True):
        if missing := sorted({*task.rewards} - numbers.keys()):
            raise ValueError(
                f"task {task.name!r}: info of every grade must have the rewards {missing}, got"
                f" {sorted(numbers)} for a response to prompt {prompt.text!r}"
            )
        for name in task.rewards:
            if abs(numbers[name]) > LARGEST:
                raise ValueError(
                    f"task {task.name!r}: {name} must be finite in float32 or NaN, got"
                    f" {numbers[name]} for a response to prompt {prompt.text!r}"
                )
    rewards = [[numbers[name] for name in task.rewards] for numbers in earned]
    return np.array(rewards, batch.rollouts.reward.dtype).reshape(len(batch), len(task.rewards))
