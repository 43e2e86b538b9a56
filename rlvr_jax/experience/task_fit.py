"""A chain and the task of a run: prompts that its parts can read, messages of its environment."""

from collections.abc import Sized
from typing import Any, Literal

from rlvr_jax.experience.chain import Experience
from rlvr_jax.tasks import Task
from rlvr_jax.tools import World
from rlvr_jax.types import replace


def check_prompts_suffice(task: Task, chain: Experience) -> None:
    """Refuses parts that read a field which the task's prompts lack."""
    for label, needs in chain.reads.items():
        for need in sorted(needs):
            lacking = next((p for p in task.train if _lacks(getattr(p, need, None))), None)
            if lacking is not None:
                raise ValueError(
                    f"{label} reads Prompt.{need}, which a prompt of task {task.name!r} does not"
                    f" have: {lacking.text[:80]!r}"
                )


def _lacks(value: Any) -> bool:
    """Whether a field of a prompt is not there, or empty; the number 0 is an answer."""
    return value is None or (isinstance(value, Sized) and not len(value))


def with_environment(task: Task, environment: World | Literal["task"] | None) -> Task:
    """The task with the first messages of an environment before each of its prompts.

    Args:
      environment: of a draw; "task": that of the task.
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
