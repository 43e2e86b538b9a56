"""A few chosen prompts, again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives.arguments import check_count
from rlvr_jax.types.parts import part

__all__ = ["chosen_prompts"]


@part
def chosen_prompts(numbers: Sequence[int]) -> Curriculum:
    """Fills every step with some prompts, in turns; each copy is a group of its own.

    Args:
      numbers: positions in the task's train prompts, at least one.
    Raises:
      ValueError: none, or a negative one; when a run begins, one behind the last prompt.
    """
    if not len(numbers):
        raise ValueError("chosen_prompts: numbers must name prompts, got none")
    for number in numbers:
        check_count(0, "chosen_prompts", numbers=number)

    def init(setting):
        number = len(setting.task.train)
        if max(numbers) >= number:
            raise ValueError(
                f"chosen_prompts: numbers must be below {number}, the train prompts of task"
                f" {setting.task.name!r}, got {max(numbers)}"
            )
        return ()

    def propose(asks, state, turn):
        del asks, state
        return asks_for(turn, np.resize(np.array(numbers), turn.setting.prompts))

    return Curriculum(propose, init)
