"""Of more answers than are trained on, those whose steps agree with their outcome."""

from __future__ import annotations

import numpy as np

from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.rows import select_rows
from rlvr_jax.types import Rollouts
from rlvr_jax.types.hyperparameters import Count, NonNegative
from rlvr_jax.types.parts import part

__all__ = ["consistency", "consistent_rows", "num_right_kept", "select_consistent", "step_means"]


def step_means(rollouts: Rollouts) -> tuple[np.ndarray, np.ndarray]:
    """The mean score of the steps of each row, and their number, both [B]; 0 of none.

    The score of a step is the sum of `process_reward` over its tokens.
    """
    member = np.asarray(rollouts.mask) & (np.asarray(rollouts.step) >= 0)
    ids = np.sort(np.where(member, rollouts.step, -1), axis=1)
    begins = np.diff(ids, axis=1, prepend=-1) != 0
    number = np.sum(begins & (ids >= 0), axis=1)
    total = np.sum(np.where(member, rollouts.process_reward, 0), axis=1)
    return total / np.maximum(number, 1), number


def consistency(
    mean: np.ndarray, number: np.ndarray, right: np.ndarray, penalty: float, most_steps: int
) -> np.ndarray:
    """How well the steps of an answer agree with its outcome, ±(mean - λ I), + if it is right.

    I is 1 for an answer of at most one step and for one of `most_steps` or more.

    Args:
      mean, number: of its steps, [B].
      right: bool [B].
      penalty: λ.
    """
    odd = (number <= 1) | (number >= most_steps)
    return np.where(right, 1, -1) * (mean - penalty * odd)


def num_right_kept(rights: int, wrongs: int, number: int) -> int:
    """How many right answers are kept so that both kinds are as equal as they can be."""
    return min(rights, max(number // 2, number - wrongs))


def consistent_rows(right: np.ndarray, agreement: np.ndarray, number: int) -> np.ndarray:
    """Which of n answers are kept, bool [n]: of each kind those that agree most, in equal shares.

    Args:
      right: bool [n].
      agreement: [n]; of equal ones the earlier is kept.
      number: to keep, at most n.
    """
    rights, wrongs = np.flatnonzero(right), np.flatnonzero(~right)
    num_right = num_right_kept(len(rights), len(wrongs), number)
    kept = np.zeros(len(right), bool)
    for rows, count in ((rights, num_right), (wrongs, number - num_right)):
        kept[rows[np.argsort(-agreement[rows], kind="stable")[:count]]] = True
    return kept


@part
def select_consistent(
    drawn: int = 2, penalty: NonNegative = 1.0, most_steps: Count = 30, rank_wrong: bool = True
) -> Stage:
    """Keeps right answers of right steps and wrong answers of wrong steps, of more that were drawn.

    As many right as wrong ones, as far as there are. Process scores select, they are not learned
    from. Groups of one kind are kept, too; their advantages are 0. Those with too few verdicts are
    dropped: their mask is cleared.

    Args:
      drawn: answers drawn for each that is kept.
      penalty: λ, for answers of one step or of many.
      most_steps: many.
      rank_wrong: wrong ones are chosen by their steps, too; else the first ones, which of
        exchangeable answers are a uniform choice.
    Reads: outcome, step, process_reward. Metrics: as `select_rows`.
    Raises:
      ValueError: a negative penalty; fewer than one step.
    Source: https://github.com/Chenluye99/PROF.
    """

    def choose(batch, rows, number, turn):
        del turn
        rows = rows[batch.decided[rows]]
        if len(rows) < number:
            return rows[:0]
        own = batch.take(rows).rollouts
        right = own.outcome > 0.5
        agreement = consistency(*step_means(own), right, penalty, most_steps)
        if not rank_wrong:
            agreement = np.where(right, agreement, 0)
        return rows[consistent_rows(right, agreement, number)]

    return select_rows(choose, drawn)
