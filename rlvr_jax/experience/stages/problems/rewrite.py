"""Hard problems in simpler words, and others in different ones, written by the policy itself."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from rlvr_jax.experience.asks import Shown, View
from rlvr_jax.experience.batch import concatenate
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.problems.written import (
    WRITTEN,
    asks_of_problems,
    kept_groups,
    mixed,
    read_problems,
    with_request,
)
from rlvr_jax.tasks import Prompt, Task
from rlvr_jax.types.hyperparameters import Unit
from rlvr_jax.types.parts import part

__all__ = ["EASY", "HARD", "MEDIUM", "bands", "rewrite_prompts"]

HARD, MEDIUM, EASY = 0, 1, 2

SIMPLER = "Write a simpler version of this problem that has the same answer."
OTHER = "Write this problem differently, so that it has the same answer."
FORM = " Do not reveal the answer. Put the problem between ```text and ```."


def bands(accuracy: np.ndarray, hard: float, medium: float) -> np.ndarray:
    """0 (hard) for accuracies up to `hard`, 1 (medium) up to `medium`, 2 (easy) above; int [G]."""
    return np.where(accuracy <= hard, HARD, np.where(accuracy <= medium, MEDIUM, EASY))


@part(writes=frozenset({"cell"}), by_row=True, most=2.0)
def rewrite_prompts(hard: Unit, medium: Unit) -> Stage:
    """Has the policy write hard prompts simpler and medium ones differently, and asks these, too.

    What is written keeps the answer of its prompt, which the policy is shown; one row is drawn for
    it and not learned from. Groups of mixed outcomes are kept, of the prompts and of what was
    written; rows are labelled by the band of their prompt (`Rollouts.cell`: 0 hard, 1 medium, 2
    easy). What exceeds the room is left out, originals first, then medium ones.

    Args:
      hard, medium: accuracies up to which a prompt is hard, and medium.
    Reads: outcome, Prompt.gold, answer. Draws: a text for each hard or medium prompt, and as many
      rows as a group has for each problem read. Writes: cell.
    Metrics: hard_prompts, medium_prompts (share), rewritten (problems read), rewritten_kept (groups
      of these), kept_groups.
    Raises:
      ValueError: bounds outside [0, 1], or hard not below medium.
    Source: CLPO, https://github.com/csuking/CLPO.
    """
    if not hard < medium:
        raise ValueError(f"rewrite_prompts: hard must be below medium {medium}, got {hard}")

    def apply(batch, actor, state, turn):
        task, setting = turn.setting.task, turn.setting
        outcomes = batch.outcomes()
        number = np.maximum((~np.isnan(outcomes)).sum(axis=1), 1)
        band = bands(np.nansum(outcomes, axis=1) / number, hard, medium)
        told = {
            "hard_prompts": float(np.mean(band == HARD)),
            "medium_prompts": float(np.mean(band == MEDIUM)),
        }
        sizes = list(map(len, batch.groups))
        batch = batch.with_rollouts(cell=np.repeat(band.astype(np.int32), sizes))
        wanted = band < EASY
        problems, labels = [], []
        if wanted.any():
            asks = [
                replace(ask, view=_asking(SIMPLER if label == HARD else OTHER), samples=1)
                for ask, label in zip(batch.asks_of(wanted), band[wanted], strict=True)
            ]
            found = read_problems(actor.draw(asks, turn.key), actor, turn)
            for problem, label in zip(found, band[wanted].tolist(), strict=True):
                if problem is not None:
                    problems.append(problem)
                    labels.append(label)
        parts = [kept_groups(batch, mixed(outcomes))]
        written = None
        if problems:
            asks = asks_of_problems(problems, labels, setting.samples, task)
            key = jax.random.fold_in(turn.key, 1)
            written = actor.grade(actor.draw(asks, key))
            keep = mixed(written.outcomes())
            for label in (MEDIUM, HARD):
                parts.insert(0, kept_groups(written, keep & (np.array(labels) == label)))
            told["rewritten_kept"] = float(keep.sum())
        told["rewritten"] = float(len(problems))
        whole = [part for part in parts if part is not None]
        told["kept_groups"] = float(sum(len(part.groups) for part in whole))
        if not whole:
            return batch.without(np.ones(len(batch), bool)), state, told
        return concatenate(whole).renumbered(), state, told

    views = (_asking(SIMPLER), _asking(OTHER), WRITTEN)
    return Stage(apply, views=views)


@part
def _asking(request: str) -> View:
    """Shows a prompt with its answer, and asks for another version of it."""

    def show(prompt: Prompt, task: Task) -> Shown:
        answer = str(prompt.answer if prompt.gold is None else prompt.gold)
        return with_request(request + FORM, answer).show(prompt, task)

    return View(show)
