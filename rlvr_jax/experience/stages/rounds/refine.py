"""The best answer of a group is written anew, with what it lacks in the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from rlvr_jax.experience.grades import with_grades
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.donors.traces import own_rows
from rlvr_jax.experience.views import showing
from rlvr_jax.objectives import Criterion, Shaping, first_of_largest, scored
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.types.parts import part

__all__ = ["refine", "unmet"]

Revise = Callable[[Task, Prompt, str, Sequence[str]], str]
"""(task, prompt, answer, what it lacks, in words) -> what the policy is shown."""


def unmet(points: np.ndarray, rubric: Sequence[Criterion], least: float) -> np.ndarray:
    """Which criteria each answer does not meet, bool [B, K]; one without a score is not met."""
    return ~(np.asarray(scored(points, rubric)) >= least)


def ask_to_revise(task: Task, prompt: Prompt, answer: str, lacking: Sequence[str]) -> str:
    """The prompt with the answer, as the task shows one, and behind it what it lacks; in words,
    where the task has no way of its own."""
    if task.show_answer is not None:
        return "\n".join([task.show_answer(prompt, answer), *lacking])
    listed = "\n".join(lacking)
    return f"{prompt.text}\n\nAnswer:\n{answer}\n\nRevise it so that these are met:\n{listed}"


@part(by_row=True)
def refine(
    rubric: Sequence[Criterion],
    reward: Shaping,
    first: int = 0,
    least: float = 0.5,
    revise: Revise = ask_to_revise,
) -> Stage:
    """Draws the last answer of a group from its best one and the criteria that this one lacks.

    So one fewer is drawn first. Where the best answer lacks nothing, and where no answer has a
    verdict, the last one is drawn from the prompt alone. A revised answer is learned from under the
    prompt alone, as of another policy: `off_policy`.

    What an answer lacks is said by the text of the criterion, or by the name that the task's reward
    has.

    Args:
      rubric: criteria, columns of the task's rewards.
      reward: by which an answer is best; of equal ones the first.
      first: column of the first criterion.
      least: score from which on a criterion is met.
      revise: what the policy is shown.
    Reads: outcome, component_rewards, texts. Writes: off_policy, origin.
    Metrics: refined_share (of the groups), refined_gain (by how much revised answers are better
      than what they revise).
    Raises:
      ValueError: groups of one; when a run begins, a task with fewer rewards than criteria.
    Source: RGR-GRPO, https://arxiv.org/abs/2511.12344.
    """
    last = first + len(rubric)

    def size(samples):
        if samples < 2:
            raise ValueError(f"refine: groups must have at least 2 rollouts, got {samples}")
        return samples - 1

    def init(setting):
        if len(setting.task.rewards) < last:
            raise ValueError(
                f"refine: task must give {last} rewards (Task.rewards), got"
                f" {len(setting.task.rewards)} of {setting.task.name!r}"
            )
        return ()

    def graded(batch, task):
        lacking = {"component_rewards"} if batch.rollouts.component_rewards is None else set()
        known = with_grades(batch, task, lacking).rollouts
        return known, np.where(batch.decided, np.asarray(reward(known)), -np.inf)

    def apply(batch, actor, state, turn):
        task = turn.setting.task
        known, earned = graded(batch, task)
        earned = np.where(np.isnan(earned), -np.inf, earned)
        best = first_of_largest(np.maximum(earned, -1e30), batch.rollouts.group, known.rollout_id)
        rows = np.flatnonzero(best)
        open_ = unmet(known.component_rewards[:, first:last], rubric, least)[rows]
        wanted = open_.any(axis=1) & np.isfinite(earned[rows])
        texts = batch.take(rows).responses
        said = _said(rubric, task.rewards[first:last])
        asks = []
        for place, row in enumerate(rows.tolist()):
            ask = replace(batch.asks[row], samples=1, first_sample=turn.setting.samples - 1)
            if wanted[place]:
                lacking = [name for name, out in zip(said, open_[place], strict=True) if out]
                shown = revise(task, ask.prompt, texts[place].text, lacking)
                ask = replace(ask, view=showing(shown))
            asks.append(ask)
        drawn = actor.grade(actor.draw(asks, turn.key))
        _, gained = graded(drawn, task)
        plain = [
            replace(ask, view=batch.asks[row].view) for ask, row in zip(asks, rows, strict=True)
        ]
        tokens, length = actor.prompts(plain)
        revised = own_rows(drawn).with_rollouts(
            prompt_tokens=tokens, prompt_length=length, off_policy=wanted
        )
        everywhere = np.ones(len(batch.groups), bool)
        batch = own_rows(batch).with_groups(everywhere, revised, "append")
        told = {"refined_share": float(wanted.mean())}
        known = wanted & np.isfinite(gained)
        if known.any():
            told["refined_gain"] = float(np.mean(gained[known] - earned[rows][known]))
        return batch, state, told

    gives = frozenset({"off_policy", "origin"})
    of_task = frozenset({"rewards"})
    return Stage(apply, init=init, size=size, writes=gives, of_task=of_task)


def _said(rubric: Sequence[Criterion], rewards: Sequence[str]) -> list[str]:
    """What the policy is told of each criterion: its text, or the name of the task's reward."""
    named = zip(rubric, rewards, strict=True)
    return [one.text or name.removeprefix("judge/") for one, name in named]
