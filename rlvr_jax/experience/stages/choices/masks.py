"""Stages that take rows out of the loss."""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.parts import part

__all__ = ["mask_truncated", "mask_void"]


@part
def mask_truncated() -> Stage:
    """Takes responses that the budget cut out of the loss; their rewards stay in their groups.

    Reads: truncated. Writes: mask.
    """

    def apply(batch, actor, state, turn):
        del actor, turn
        return batch.without(batch.rollouts.truncated), state, {}

    return apply


@part
def mask_void() -> Stage:
    """Takes responses that asked no environment and gave no answer out of the loss; their rewards
    stay in their groups.

    Reads: turn, and the answers of the grades (`Task.answers`). Writes: mask. Metrics: void_share.
    Raises:
      ValueError: when a run begins, a task that does not give answers.
    """

    def init(setting):
        if not setting.task.answers:
            raise ValueError(
                f"mask_void: reads answers, which task {setting.task.name!r} does not give"
                " (Task.answers)"
            )
        return ()

    def apply(batch, actor, state, turn):
        del actor, turn
        turns = batch.rollouts.turn
        asked = np.zeros(len(batch), bool) if turns is None else (turns % 2 == 1).any(axis=1)
        answered = np.array([grade.answer is not None for grade in batch.grades], bool)
        void = ~(asked | answered)
        return batch.without(void), state, {"void_share": float(void.mean())}

    return Stage(apply, init, of_task=frozenset({"answers"}))
