"""Some rows of every group begin with part of a worked solution, whose length follows accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.batch import GIVEN
from rlvr_jax.experience.parts import Stage
from rlvr_jax.types.hyperparameters import Count
from rlvr_jax.types.parts import part

__all__ = ["Guidance", "first_rows", "guidance_after", "guide_first_rows"]

WINDOW = 2
"""Accuracies that the next one is compared with."""


class Guidance(NamedTuple):
    """How much of a solution is given.

    Fields:
      length: int32 [], tokens (ℓ).
      steps: int32 [], accuracies seen.
      recent: float64 [2], the ones that the next is compared with.
    """

    length: np.ndarray
    steps: np.ndarray
    recent: np.ndarray


def guidance_after(state: Guidance, accuracy: float, longest: int) -> Guidance:
    """The guidance after a step: shorter if it was more accurate than the two before, else longer.

    Every third accuracy a_s is compared with the mean ā of the two before it. If neither is 0:
    ℓ' = ⌊min(ℓ ā / a_s, ℓ_max)⌋ where a_s < ā, max(⌊ℓ ā / a_s⌋, 1) where a_s > ā.

    Args:
      accuracy: of the step, in [0, 1].
      longest: ℓ_max.
    """
    place = int(state.steps) % (WINDOW + 1)
    recent, length = state.recent.copy(), int(state.length)
    if place < WINDOW:
        recent[place] = accuracy
    else:
        mean = recent.mean()
        if mean > 0 and accuracy > 0 and mean != accuracy:
            wanted = length * mean / accuracy
            length = max(int(wanted), 1) if accuracy > mean else int(min(wanted, longest))
    return Guidance(np.int32(length), np.int32(state.steps + 1), recent)


def first_rows(groups: Sequence[np.ndarray], number: int) -> np.ndarray:
    """The first `number` rows of every group, bool [B].

    Args:
      groups: the rows of each group.
    """
    return np.concatenate([np.arange(len(rows)) < number for rows in groups])


@part
def guide_first_rows(rows: Count, longest: Count) -> Stage:
    """Lets the first rows of every group begin with the first ℓ tokens of the worked solution.

    They are drawn beside the others, from the same prompt; the given tokens are learned from as if
    the policy had drawn them, with the advantage of the row. ℓ begins with `longest` and follows
    the accuracy of the trained rows (`guidance_after`).

    Args:
      rows: of each group that are guided.
      longest: ℓ at first and at most, tokens.
    Reads: Prompt.solution. Writes: mask, origin. Draws: `rows` for each group.
    Metrics: guidance_length (ℓ), guided_tokens (mean of what a guided row was given).
    Raises:
      ValueError: a number below 1; when a run is set up, groups without a free row, and a prompt
        without a solution.
    Source: G²RPO-A, https://github.com/T-Lab-CUHKSZ/G2RPO-A.
    """

    def size(samples):
        if samples <= rows:
            raise ValueError(
                f"guide_first_rows: rows must be below the {samples} rollouts of a group, got"
                f" {rows}"
            )
        return samples - rows

    def init(setting):
        del setting
        return Guidance(np.int32(longest), np.int32(0), np.zeros(WINDOW))

    def apply(batch, actor, state, turn):
        most = min(int(state.length), turn.setting.response_tokens - 1)
        every = np.ones(len(batch.groups), bool)
        asks = [
            replace(ask, samples=rows, given=actor.encode("".join(ask.prompt.solution))[:most])
            for ask in batch.asks_of(every)
        ]
        drawn = actor.grade(actor.draw(asks, turn.key))
        batch = batch.with_groups(every, drawn, "prepend")
        rollouts = batch.rollouts
        given = (rollouts.origin == GIVEN) & first_rows(batch.groups, rows)[:, None]
        told = {
            "guidance_length": float(state.length),
            "guided_tokens": float(given.sum() / (rows * len(asks))),
        }
        return batch.with_rollouts(mask=rollouts.mask | given), state, told

    def observe(state, turn, seen, learned):
        del turn, seen
        accuracy = learned.rollouts.outcome[learned.decided].astype(float)
        if len(accuracy):
            state = guidance_after(state, float(accuracy.mean()), longest)
        return state, {}

    needs, gives = frozenset({"solution"}), frozenset({"origin"})
    return Stage(apply, init, observe, needs, size=size, writes=gives, by_row=True)
