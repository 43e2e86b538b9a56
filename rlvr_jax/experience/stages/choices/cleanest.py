"""Of more answers than are trained on, all kinds of wrong ones and the cleanest right ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.grades import component_rewards
from rlvr_jax.experience.parts import Stage
from rlvr_jax.experience.stages.choices.groups import uniform
from rlvr_jax.experience.stages.choices.rows import select_rows
from rlvr_jax.tasks import Task
from rlvr_jax.types.hyperparameters import NonNegativeInt
from rlvr_jax.types.parts import part

__all__ = [
    "call_penalty",
    "cleanest_rows",
    "missed_rewards",
    "select_cleanest",
    "tag_penalty",
    "untidy_tool_use",
]

Penalty = Callable[[Batch, Task], np.ndarray]
"""(batch, task) -> [B], at least 0: how untidy an answer is."""


def missed_rewards(batch: Batch, task: Task) -> np.ndarray:
    """What each row missed of the task's rewards beside the first, Σ_{k>0} (1 - x_k), [B].

    A reward that does not apply (NaN) is missed.
    """
    rewards = batch.rollouts.component_rewards
    rewards = component_rewards(batch, task) if rewards is None else np.asarray(rewards)
    return np.sum(1 - np.nan_to_num(rewards[:, 1:]), axis=1)


def tag_penalty(texts: Sequence[str], turns: np.ndarray, tag: str = "answer") -> np.ndarray:
    """How untidy the answer tags of responses are, [B]: min((answers - 1) / turns, 1).

    1 where tags are missing or do not pair, and where there is no turn.

    Args:
      texts: of the responses.
      turns: of each response.
      tag: its name.
    """
    opened = np.array([text.count(f"<{tag}>") for text in texts])
    closed = np.array([text.count(f"</{tag}>") for text in texts])
    turns = np.asarray(turns)
    untidy = (opened != closed) | (opened == 0) | (turns == 0)
    return np.where(untidy, 1.0, np.minimum((opened - 1) / np.maximum(turns, 1), 1))


def call_penalty(replies: Sequence[Sequence[str]]) -> np.ndarray:
    """The share of a response's replies in which "error" stands, in capitals or not; ½ where it was
    told nothing, [B].

    Args:
      replies: texts that each response was told.
    """
    failed = [["error" in text.lower() for text in own] for own in replies]
    return np.array([np.mean(own) if own else 0.5 for own in failed])


def untidy_tool_use(batch: Batch, task: Task) -> np.ndarray:
    """`call_penalty` of what each row was told plus `tag_penalty` of what it wrote, [B]."""
    del task
    rollouts, replies, written, turns = batch.rollouts, [], [], []
    for row, length in enumerate(rollouts.length):
        tokens = rollouts.tokens[row, :length]
        turn = np.zeros(length, int) if rollouts.turn is None else rollouts.turn[row, :length]
        # An end that nobody wrote is in no turn.
        own, told = ([n for n in np.unique(turn[turn >= 0]) if n % 2 == odd] for odd in (0, 1))
        parts = [tokens[turn == n].tolist() for n in told] + [tokens[np.isin(turn, own)].tolist()]
        *texts, said = batch.tokenizer.batch_decode(parts, clean_up_tokenization_spaces=False)
        replies.append(texts)
        written.append(said)
        turns.append(len(own))
    return call_penalty(replies) + tag_penalty(written, np.array(turns))


def cleanest_rows(
    right: np.ndarray, penalty: np.ndarray, number: int, least_wrong: int, least_right: int
) -> np.ndarray:
    """Which of n answers are kept, bool [n].

    Wrong ones in the share that they have, rounded half to even, and right ones for the rest; but
    at least so many of each as long as there are. Of the right ones those of lowest penalty, of
    equal ones the earlier; of the wrong ones the first, which of exchangeable answers are a uniform
    choice.

    Args:
      right: bool [n].
      penalty: [n].
      number: to keep, at most n.
      least_wrong, least_right: `number` together at most.
    """
    wrongs, rights = np.flatnonzero(~right), np.flatnonzero(right)
    share = number / len(right)
    num_wrong, num_right = round(len(wrongs) * share), round(len(rights) * share)
    if num_wrong <= (least := min(least_wrong, len(wrongs))):
        num_wrong, num_right = least, number - least
    if num_right <= (least := min(least_right, len(rights))):
        num_wrong = number - least
    order = np.argsort(penalty[rights], kind="stable")
    kept = np.zeros(len(right), bool)
    kept[wrongs[:num_wrong]] = True
    kept[rights[order[: number - num_wrong]]] = True
    return kept


@part
def select_cleanest(
    drawn: int = 2,
    penalty: Penalty = missed_rewards,
    least_wrong: NonNegativeInt = 2,
    least_right: NonNegativeInt = 2,
) -> Stage:
    """Keeps wrong answers as they come and the cleanest right ones, of more that were drawn.

    Groups of equal outcomes, and those with too few verdicts, are dropped: their mask is cleared.

    Args:
      drawn: answers drawn for each that is kept.
      penalty: (batch, task) -> [B]; the right answers of lowest penalty are kept.
      least_wrong, least_right: kept of each where there are so many, see `cleanest_rows`.
    Reads: outcome, and what the penalty reads. Metrics: as `select_rows`.
    Raises:
      ValueError: negative minima; when called, more of them than answers to keep.
    Source: https://github.com/microsoft/rStar (rStar2-Agent, resample on correct).
    """

    def choose(batch, rows, number, turn):
        if least_wrong + least_right > number:
            raise ValueError(
                f"select_cleanest: least_wrong and least_right must be at most {number} together,"
                f" the rows that are kept, got {least_wrong} and {least_right}"
            )
        rows = rows[batch.decided[rows]]
        outcome = batch.rollouts.outcome[rows]
        if len(rows) < number or uniform(outcome[None])[0]:
            return rows[:0]
        told = penalty(batch.take(rows), turn.setting.task)
        return rows[cleanest_rows(outcome > 0, told, number, least_wrong, least_right)]

    return select_rows(choose, drawn)
