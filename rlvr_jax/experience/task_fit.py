"""Checks that a chain fits a task: fields of prompts, messages of the environment."""

from collections.abc import Sized
from typing import Any, Literal

from rlvr_jax.experience.chain import Experience
from rlvr_jax.tasks import Task
from rlvr_jax.tools import World
from rlvr_jax.types import replace


def check_prompts_suffice(task: Task, chain: Experience) -> None:
    """Raises if a part reads a field that the task's prompts lack."""
    for label, needs in chain.reads.items():
        for need in sorted(needs):
            lacking = next((p for p in task.train if _lacks(getattr(p, need, None))), None)
            if lacking is not None:
                raise ValueError(
                    f"{label} reads Prompt.{need}, which must be in every prompt of task"
                    f" {task.name!r}, got none in {lacking.text[:80]!r}"
                )


def _lacks(value: Any) -> bool:
    """Whether a field of a prompt is missing or empty; the number 0 is a value."""
    return value is None or (isinstance(value, Sized) and not len(value))


def with_environment(task: Task, environment: World | Literal["task"] | None) -> Task:
    """The task with the first messages of an environment before each of its prompts.

    Args:
      environment: the environment of a draw; "task": that of the task.
    """
    world = task.environment if environment == "task" else environment
    if world is None:
        return task

    def with_messages(prompt):
        _, messages = world.start(prompt)
        return replace(prompt, messages=(*messages, *prompt.messages)) if messages else prompt

    return replace(
        task, train=list(map(with_messages, task.train)), test=list(map(with_messages, task.test))
    )
