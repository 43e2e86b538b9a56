"""What is made of how players did in a tournament: scores, places, rewards, differences.

A round is a sequence of (first, second, score of the first, score of the second). A pair whose
scores are NaN moves nobody up or down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

__all__ = [
    "anchor_scores",
    "difference_advantage",
    "difference_table",
    "knockout_places",
    "place_rewards",
    "points",
    "rank_rewards",
    "ranks",
    "shared_place_rewards",
    "win_rates",
    "wins",
]

Match = tuple[int, int, float, float]
Rounds = Sequence[Sequence[Match]]
Scores = Float[np.ndarray, "N"]


def points(players: int, rounds: Rounds) -> list[list[float]]:
    """All scores of each player, in order."""
    found: list[list[float]] = [[] for _ in range(players)]
    for first, second, one, other in scored_matches(rounds):
        found[first].append(one)
        found[second].append(other)
    return found


def anchor_scores(players: int, rounds: Rounds) -> Scores:
    """The score of each beside the first, whose own is the mean of its scores.

    One without a score has the mean of the others, 0 where nobody has any.
    """
    own = [np.mean(scores) if scores else np.nan for scores in points(players, rounds[:1])]
    known = [score for score in own if not np.isnan(score)]
    return np.nan_to_num(np.array(own), nan=np.mean(known) if known else 0.0)


def wins(players: int, rounds: Rounds) -> Scores:
    """Wins of each; a draw, and a pair of which nobody can say who is better, is half a win."""
    found = np.zeros(players)
    for matches in rounds:
        for first, second, one, other in matches:
            ahead = np.nan_to_num(np.sign(one - other))
            found[first] += 0.5 + 0.5 * ahead
            found[second] += 0.5 - 0.5 * ahead
    return found


def win_rates(players: int, rounds: Rounds, least: float = 0.1, scale: float = 9.0) -> Scores:
    """μ_i = Σ w 1[s_i > s_j] / Σ w, w = max(τ, |s_i - s_j| / scale); a draw is half, 0 of none.

    Args:
      least: τ, what a pair counts at least.
      scale: the largest difference of two scores.
    Source: V_1.
    """
    won, mass = np.zeros(players), np.zeros(players)
    for first, second, one, other in scored_matches(rounds):
        weight = max(least, abs(one - other) / scale)
        share = 0.5 + 0.5 * np.sign(one - other)
        won[first] += weight * share
        won[second] += weight * (1 - share)
        mass[[first, second]] += weight
    return np.where(mass > 0, won / np.where(mass > 0, mass, 1), 0)


def ranks(scores: Scores) -> Int[np.ndarray, "N"]:
    """1 for the best; equal ones have the best place of them."""
    return 1 + np.sum(scores[None] > scores[:, None], axis=1)


def rank_rewards(rank: Int[np.ndarray, "N"]) -> Scores:
    """(k - rank) / (k - 1), k the last rank: from 1 to 0; 0 if all are equal."""
    last = rank.max()
    return (last - rank) / max(last - 1, 1)


def knockout_places(players: int, rounds: Rounds) -> Int[np.ndarray, "N"]:
    """The place of each after a seeded knockout, 1 for the champion; no two are equal.

    Those who lost in one round stand by the mean of their seed (`anchor_scores`) and their scores.
    """
    seeds, later = anchor_scores(players, rounds), points(players, rounds[1:])
    mean = np.array([np.mean([seed, *own]) for seed, own in zip(seeds, later, strict=True)])
    order: list[int] = []
    for matches in rounds[:0:-1]:
        lost = [s if not other > one else f for f, s, one, other in matches]
        order += sorted(lost, key=lambda player: (-mean[player], player))
    champion = [player for player in range(players) if player not in order]
    place = np.empty(players, int)
    place[[*champion, *order]] = 1 + np.arange(players)
    return place


def place_rewards(place: Int[np.ndarray, "N"]) -> Scores:
    """1 - (place - 1) / (N - 1); 0 of one player."""
    others = len(place) - 1
    return 1 - (place - 1) / others if others else np.zeros(1)


def shared_place_rewards(rank: Int[np.ndarray, "N"]) -> Scores:
    """`place_rewards`, of which players of one rank have the mean of the places that they take."""
    number = np.sum(rank[None] == rank[:, None], axis=1)
    return place_rewards(rank + (number - 1) / 2)


def difference_table(players: int, rounds: Rounds) -> Float[np.ndarray, "N N"]:
    """d_ij = s_i - s_j of pairs that have met, 0 of others: antisymmetric."""
    table = np.zeros((players, players))
    for first, second, one, other in scored_matches(rounds):
        table[first, second], table[second, first] = one - other, other - one
    return table


def difference_advantage(table: Float[np.ndarray, "N N"], epsilon: float = 1e-6) -> Scores:
    """(1/N) Σ_j d_ij / √(Σ d² / (2 N (N - 1)) + ε): if d_ij = r_i - r_j, that is (r - mean) / std.

    Cycles shrink what is above the root and not what is below. 0 of one player.

    Args:
      table: d.
      epsilon: ε, inside the root.
    Source: Think-RM, https://github.com/IlgeeHong/Think-RM.
    """
    players = len(table)
    spread = np.sum(table**2) / max(2 * players * (players - 1), 1)
    return table.mean(axis=1) / np.sqrt(spread + epsilon)


def scored_matches(rounds):
    for matches in rounds:
        for match in matches:
            if not np.isnan(match[2:]).any():
                yield match
