"""Answers to one prompt are compared with each other, pair by pair."""

from collections.abc import Callable, Sequence

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.grades import component_rewards
from rlvr_jax.experience.heard import Heard, with_heard
from rlvr_jax.experience.parts import Actor, Stage, Turn
from rlvr_jax.experience.rewards.tournaments import Met, Schedule, round_robin
from rlvr_jax.types import is_correct
from rlvr_jax.types.parts import Function, part

__all__ = ["compare_by", "tournament"]

Rows = Sequence[tuple[int, int]]
Compare = Callable[[Batch, Rows, Actor, Turn], tuple[np.ndarray, dict[str, float], Sequence[Heard]]]
"""(batch, pairs of rows, actor, turn) -> [n, 2], the scores of both, NaN where nobody can say;
counts; and what was said of them, if it was words."""
Standing = Callable[[int, Sequence[Sequence[Met]]], np.ndarray]
"""(players, rounds) -> [players]."""


@part
def compare_by(column: int | None = None) -> Function:
    """Compares by a number that each answer has.

    Args:
      column: of the task's rewards; None: the outcome.
    """

    def compare(batch, pairs, actor, turn):
        del actor
        numbers = batch.rollouts.outcome
        if column is not None:
            known = batch.rollouts.component_rewards
            own = component_rewards(batch, turn.setting.task) if known is None else known
            numbers = np.asarray(own)[:, column]
        return numbers[np.array(pairs)], {}, ()

    return compare


@part(by_row=True)
def tournament(
    compare: Compare,
    reward: Standing,
    schedule: Schedule = round_robin,
    advantage: Standing | None = None,
) -> Stage:
    """Gives every answer the reward of how it did against the others of its group.

    Answers without a verdict do not play, and one of which no comparison could be read has no
    reward. Where every comparison of a group is a draw all earn 0: places would be those of their
    order. All groups of a round are compared at once.

    Args:
      compare: who compares.
      reward: of the rounds.
      schedule: who meets.
      advantage: of the rounds; the rows then bring it, and the objective estimates none.
    Reads: outcome, what `compare` reads. Writes: reward, and advantage if it is given; what was
      said of each answer into its grade.
    Metrics: what `compare` counts, compared_pairs, unreadable_pairs, right_wins (of the pairs of a
      right and a wrong answer, the share in which the right one has the higher score; a draw is
      half), and rows_without_reward where there are any.
    """

    def apply(batch, actor, state, turn):
        players = [rows[batch.decided[rows]] for rows in batch.groups]
        counts: dict[str, float] = {}
        heard: list[Heard] = []

        def ask(pairs):
            scores, told, said = compare(batch, pairs, actor, turn)
            heard.extend(said)
            for name, count in told.items():
                counts[name] = counts.get(name, 0.0) + count
            return scores

        rounds = _played(players, schedule, ask)
        earned = np.zeros(len(batch), batch.rollouts.reward.dtype)
        credit = np.zeros(len(batch), batch.rollouts.reward.dtype)
        for rows, own in zip(players, rounds, strict=True):
            if not len(rows):
                continue
            if _differ(own):
                earned[rows] = reward(len(rows), own)
                credit[rows] = 0 if advantage is None else advantage(len(rows), own)
            earned[rows[_unheard(len(rows), own)]] = np.nan
        known = {"reward": earned}
        if advantage is not None:
            mask = batch.rollouts.mask
            known["advantage"] = np.where(mask, credit[:, None], 0).astype(credit.dtype)
        told = counts | _told(batch, players, rounds)
        if without := float(np.isnan(earned).sum()):
            told["rows_without_reward"] = without
        return with_heard(batch, heard).with_rollouts(**known), state, told

    gives = frozenset({"advantage"} if advantage is not None else ())
    return Stage(apply, writes=gives)


def _played(players, schedule, compare) -> list[list[list[Met]]]:
    """The rounds of each group; those of one number are compared together."""
    rounds: list[list[list[Met]]] = [[] for _ in players]
    while True:
        asked = [
            schedule(len(rows), own) if len(rows) > 1 else []
            for rows, own in zip(players, rounds, strict=True)
        ]
        pairs = [
            (int(rows[i]), int(rows[j]))
            for rows, own in zip(players, asked, strict=True)
            for i, j in own
        ]
        if not pairs:
            return rounds
        scores = np.asarray(compare(pairs), float).tolist()
        for own, new in zip(rounds, asked, strict=True):
            if new:
                own.append([Met(*pair, *scores.pop(0)) for pair in new])


def _differ(rounds: Sequence[Sequence[Met]]) -> bool:
    """Whether one of any two was better."""
    scores = np.array([match[2:] for matches in rounds for match in matches]).reshape(-1, 2)
    return bool(np.any(np.abs(scores[:, 0] - scores[:, 1]) > 0))


def _unheard(players: int, rounds: Sequence[Sequence[Met]]) -> np.ndarray:
    """Those who have met others, of whom nobody could say anything; bool [players]."""
    heard, met = np.zeros(players, bool), np.zeros(players, bool)
    for match in (match for matches in rounds for match in matches):
        met[list(match[:2])] = True
        heard[list(match[:2])] |= not np.isnan(match[2:]).any()
    return met & ~heard


def _told(batch: Batch, players, rounds) -> dict[str, float]:
    right = is_correct(np.asarray(batch.rollouts.outcome))
    number = unreadable = 0
    won = []
    for rows, own in zip(players, rounds, strict=True):
        for first, second, one, other in (match for matches in own for match in matches):
            number += 1
            if np.isnan(one) or np.isnan(other):
                unreadable += 1
            elif right[rows[first]] != right[rows[second]]:
                ahead = np.sign(one - other) * (1 if right[rows[first]] else -1)
                won.append(0.5 + 0.5 * ahead)
    told = {"compared_pairs": float(number), "unreadable_pairs": float(unreadable)}
    return told | ({"right_wins": float(np.mean(won))} if won else {})
