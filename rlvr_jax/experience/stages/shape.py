"""Rewards made of what is known of a batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.grades import component_rewards
from rlvr_jax.experience.parts import Stage, stateless
from rlvr_jax.objectives import Reward

__all__ = ["shape"]


def shape(reward: Reward, label: str = "", rewards: int = 0) -> Stage:
    """Gives every rollout the reward that a pure function makes of the batch; outcomes stay.

    Args:
      reward: (rollouts) -> [B], on numpy or jax arrays.
      label: of the function, if it was made by another.
      rewards: how many rewards of the task (`Task.rewards`) the function reads, as
        `component_rewards`; 0: none.
    Reads: what the function reads. Writes: reward.
    Raises:
      ValueError: when a run begins, a task with another number of rewards.
    """
    label = label or f"shape({reward.__qualname__.partition('.')[0]})"

    def init(setting):
        given = setting.task.rewards
        if rewards and len(given) != rewards:
            raise ValueError(
                f"{label}: must weigh the {len(given)} rewards of task {setting.task.name!r}"
                f" ({', '.join(given)}), got {rewards} weights"
            )
        return ()

    def apply(batch, actor, turn):
        del actor
        known = batch.rollouts
        if rewards and known.component_rewards is None:
            own = component_rewards(batch, turn.setting.task)
            known = replace(known, component_rewards=own)
        values = np.asarray(reward(known), batch.rollouts.reward.dtype)
        return batch.with_rollouts(reward=values), {}

    return stateless(apply, label, init=init)
