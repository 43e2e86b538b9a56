"""Rewards from comparisons of the responses to one prompt, pair by pair."""

from collections.abc import Callable, Sequence

import numpy as np

from rlvr_jax.experience.batch import Batch
from rlvr_jax.experience.grades import component_rewards
from rlvr_jax.experience.heard import Heard, with_heard
from rlvr_jax.experience.parts import Actor, Stage, StepContext
from rlvr_jax.experience.rewards.tournaments import (
    Met,
    Rounds,
    Schedule,
    play,
    round_robin,
    scored_matches,
)
from rlvr_jax.types import is_correct
from rlvr_jax.types.parts import Function, part

__all__ = ["compare_by", "tournament"]

Rows = Sequence[tuple[int, int]]
Compare = Callable[
    [Batch, Rows, Actor, StepContext], tuple[np.ndarray, dict[str, float], Sequence[Heard]]
]
"""(batch, pairs of rows, actor, turn) -> scores [n, 2] of both rows, NaN where they are unknown;
counts; and the replies of the judge, if there are any."""
Standing = Callable[[int, Rounds], np.ndarray]
"""(players, rounds) -> [players]."""


@part
def compare_by(column: int | None = None) -> Function:
    """A comparison of responses by one number of each, such as the outcome.

    Args:
      column: of the task's rewards; None: the outcome.
    """

    def compare(batch, pairs, actor, turn):
        numbers = batch.rollouts.outcome
        if column is not None:
            known = batch.rollouts.records.get("component_rewards")
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
    """Rewards every response by its results against the other responses of its group.

    Ungraded responses do not play. A response without a readable comparison has no reward. If all
    comparisons of a group are draws, all rewards are 0, as ranks would follow the order of rows.

    Args:
      compare: scores pairs of rows.
      reward: (players, rounds) -> rewards of the players.
      schedule: pairs of each round; all groups of a round are compared at once.
      advantage: advantage of each row, which replaces that of the objective.
    Writes: reward; advantage if it is given; the judge's replies in the grades.
    Metrics: compared_pairs (pairs), unreadable_pairs (pairs without a readable reply), correct_wins
      (fraction of the pairs of a correct and an incorrect response in which the correct one has the
      higher score; a draw counts half), ranked_uniform_groups (groups of equal outcomes and
      different rewards), rows_without_reward (rows, if there are any); those of
      `Verdicts`.
    """

    def apply(batch, actor, state, turn):
        players = [rows[batch.decided[rows]] for rows in batch.groups]
        counts: dict[str, float] = {}
        heard: list[Heard] = []

        def query(pairs):
            scores, found, replies = compare(batch, pairs, actor, turn)
            heard.extend(replies)
            for name, count in found.items():
                counts[name] = counts.get(name, 0.0) + count
            return scores

        rounds = play(players, schedule, query)
        earned = np.zeros(len(batch), batch.rollouts.reward.dtype)
        credit = np.zeros(len(batch), batch.rollouts.reward.dtype)
        for rows, own in zip(players, rounds, strict=True):
            if any(match.first_score != match.second_score for match in scored_matches(own)):
                earned[rows] = reward(len(rows), own)
                credit[rows] = 0 if advantage is None else advantage(len(rows), own)
            met = {p for matches in own for match in matches for p in match[:2]}
            met -= {p for match in scored_matches(own) for p in match[:2]}
            earned[rows[list(met)]] = np.nan
        known = {}
        if advantage is not None:
            mask = batch.rollouts.mask
            known["advantage"] = np.where(mask, credit[:, None], 0).astype(credit.dtype)
        metrics = counts | _metrics(batch, players, rounds)
        ranked = earned if advantage is None else credit
        metrics["ranked_uniform_groups"] = float(
            sum(
                len(set(batch.rollouts.outcome[rows])) == 1 and len(set(ranked[rows])) > 1
                for rows in players
            )
        )
        if without := float(np.isnan(earned).sum()):
            metrics["rows_without_reward"] = without
        return with_heard(batch, heard).rewarded(earned).with_rollouts(**known), state, metrics

    return Stage(apply, writes=frozenset({"advantage"} if advantage is not None else ()))


def _metrics(
    batch: Batch, players: Sequence[np.ndarray], rounds: Sequence[Sequence[Sequence[Met]]]
) -> dict[str, float]:
    correct = is_correct(np.asarray(batch.rollouts.outcome))
    num_pairs = sum(len(matches) for own in rounds for matches in own)
    num_scored, won = 0, []
    for rows, own in zip(players, rounds, strict=True):
        for first, second, one, other in scored_matches(own):
            num_scored += 1
            if correct[rows[first]] != correct[rows[second]]:
                ahead = np.sign(one - other) * (1 if correct[rows[first]] else -1)
                won.append(0.5 + 0.5 * ahead)
    metrics = {
        "compared_pairs": float(num_pairs),
        "unreadable_pairs": float(num_pairs - num_scored),
    }
    return metrics | ({"correct_wins": float(np.mean(won))} if won else {})
