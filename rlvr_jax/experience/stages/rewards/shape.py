"""The stage that sets the reward of rollouts."""

import numpy as np

from rlvr_jax.experience.grades import with_grades
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.rewards.outcomes import Reward
from rlvr_jax.experience.rewards.parts import Moment, Shaping, as_shaping
from rlvr_jax.types.parts import label_of, part


@part
def shape(reward: Reward | Shaping, rewards: int = 0) -> Stage:
    """Sets every rollout's reward by a pure function of the batch; outcomes do not change.

    The function sees only valid rows (`Rollouts.only_valid`), so that no statistic counts ungraded
    ones. A row whose reward is NaN is not valid: it leaves its group and the loss.

    Args:
      reward: (rollouts) -> [B], on numpy or jax arrays, or a `Shaping`.
      rewards: number of rewards of the task (`Task.rewards`) that a function weighs, as
        `component_rewards`; 0: none.
    Metrics: shaped_fraction (rows whose reward changes, of those with a reward);
      rows_without_reward (graded rows without one, if there are any); those of the reward.
    Raises:
      ValueError: at the start of a run: the task's number of rewards differs, or is below that of a
        `Shaping`. In a run: a reward is infinite.
    """
    own = as_shaping(reward)
    label = f"shape({label_of(reward)})"
    reads = own.reads | ({"component_rewards"} if rewards else set())

    def init(setting):
        _check(label, own, rewards, setting.task)
        return own.init(len(setting.task.train))

    def apply(batch, actor, state, turn):
        lacking = {name for name in reads if batch.rollouts.get(name) is None}
        known = with_grades(batch, turn.setting.task, lacking).rollouts.only_valid()
        prompt = np.array([request.number for request in batch.requests], np.int32)
        moment = Moment(turn.step, turn.key, prompt)
        values, state, metrics = own.apply(known, state, moment)
        values = np.asarray(values, batch.rollouts.reward.dtype)
        if (infinite := np.isinf(values) & batch.decided).any():
            row = int(np.flatnonzero(infinite)[0])
            raise ValueError(
                f"{label}: rewards must be finite in {values.dtype} or NaN, got {values[row]} for a"
                f" response to prompt {batch.prompts[row].text[:80]!r}"
            )
        metrics = {name: float(value) for name, value in metrics.items()}
        changed = (values != batch.rollouts.reward)[batch.decided & ~np.isnan(values)]
        metrics["shaped_fraction"] = float(np.mean(changed)) if len(changed) else 0.0
        if without := int(np.sum(np.isnan(values) & batch.decided)):
            metrics["rows_without_reward"] = without
        return batch.rewarded(values), state, metrics

    read = {"rewards": "component_rewards" in reads, "answers": "answer" in reads}
    of_task = frozenset(name for name, there in read.items() if there)
    return Stage(apply, init, of_task=of_task)


def _check(label, own, rewards, task):
    given = task.rewards
    if rewards and len(given) != rewards:
        raise ValueError(
            f"{label}: must weigh the {len(given)} rewards of task {task.name!r}"
            f" ({', '.join(given)}), got {rewards} weights"
        )
    if len(given) < own.columns:
        raise ValueError(
            f"{label}: reads {own.columns} rewards of a task (Task.rewards), got"
            f" {len(given)} of task {task.name!r} ({', '.join(given)})"
        )
