"""Scores of the steps of responses."""

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.parts import Stage
from rlvr_jax.tasks import Task
from rlvr_jax.types.parts import part


@part(by_row=True, writes={"step", "process_reward"}, of_task=frozenset({"score_steps"}))
def score_steps(threshold: float | None = None) -> Stage:
    """Records the reasoning steps of every response, and their scores by `Task.score_steps`.

    Tokens have the number of their step, from 0, or -1 after the last step. The last token of a
    step holds its score, so the step's score is the sum over its tokens. Existing records do not
    change.

    Args:
      threshold: score below which a step is incorrect; None: the method needs none.
    Metrics: steps (per row), step_score (mean over steps).
    Raises:
      ValueError: no score of the task, or every score, is below `threshold`.
    """

    def init(setting):
        bound_of_steps(threshold, setting.task, "threshold")
        return ()

    def apply(batch, actor, state, turn):
        rollouts = batch.rollouts
        if "step" in rollouts.records and "process_reward" in rollouts.records:
            return batch, state, {}
        step, reward, number = scored_steps(batch, turn.setting.task)
        step = np.where(rollouts.mask, step, -1).astype(np.int32)
        metrics = {"steps": number / len(batch), "step_score": float(reward.sum()) / max(number, 1)}
        return batch.with_rollouts(step=step, process_reward=reward), state, metrics

    return Stage(apply, init)


def bound_of_steps(below: float | None, task: Task, name: str = "incorrect_below") -> float:
    """The score below which a step is incorrect.

    Args:
      below: the bound; None: the middle of the task's range of scores (`Task.step_range`).
      name: hyperparameter of the bound.
    Raises:
      ValueError: no score, or every score, is below the bound.
    """
    low, high = task.step_range
    middle = (low + high) / 2
    if below is None:
        return middle
    if not low < below <= high:
        raise ValueError(
            f"{name} must be in ({low:g}, {high:g}], because task {task.name!r} scores steps from"
            f" {low:g} to {high:g}, got {below:g}. With --hyperparameters {name}={middle:g}, steps"
            " of the lower half are incorrect"
        )
    return below


def scored_steps(batch: Batch, task: Task) -> tuple[np.ndarray, np.ndarray, int]:
    """Steps and scores of all responses.

    Returns:
      The step of every token, -1 after the last one, int [B, T]. The score of each step at its last
      token, [B, T]. The number of steps.
    """
    rollouts, number = batch.rollouts, 0
    low, high = task.step_range
    step = np.full(rollouts.mask.shape, -1, np.int32)
    reward = np.zeros(rollouts.mask.shape, rollouts.reward.dtype)
    for row, (prompt, response) in enumerate(zip(batch.prompts, batch.responses, strict=True)):
        scored = task.score_steps(prompt, response.text)
        if not all(low <= score <= high for _, score in scored):
            raise ValueError(
                f"task {task.name!r}: scores of steps must be in its step_range [{low:g},"
                f" {high:g}], got {[score for _, score in scored]} for a response to prompt"
                f" {prompt.text[:80]!r}; set Task.step_range to their range"
            )
        ids = rollouts.tokens[row, : rollouts.length[row]].tolist()
        ends = tokens_up_to(batch.tokenizer, ids, [end for end, _ in scored])
        first = 0
        for place, (end, (_, score)) in enumerate(zip(ends, scored, strict=True)):
            step[row, first:end] = place
            reward[row, end - 1] += score
            first = end
        number += len(scored)
    return step, reward, number


def tokens_up_to(tokenizer: Any, ids: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Smallest numbers of tokens whose text reaches some lengths, found by halving.

    Args:
      tokenizer: of transformers.
      ends: numbers of characters, ascending, each at least 1.
    Returns:
      Numbers in [1, len(ids)], ascending.
    """

    def reached(count):
        (text,) = tokenizer.batch_decode([ids[:count]], clean_up_tokenization_spaces=False)
        return len(text)

    found = [1]
    for end in ends:
        found.append(bisect.bisect_left(range(len(ids)), end, found[-1], key=reached))
    return found[1:]
