"""ArenaRL: ranks the responses of a group by a tournament; the reward is the rank.

"ArenaRL: Scaling RL for Open-Ended Agents via Tournament-based Relative Ranking",
https://github.com/Alibaba-NLP/qqr

    anchor             N - 1 pairs, everyone against the first; r = (k - rank) / (k - 1), k ranks
    round robin        N (N - 1) / 2 pairs, by wins; r of the ranks
    seeded knockout    N - 1 pairs for the seeds, N - 1 matches; r = 1 - (place - 1) / (N - 1)
    Swiss              ⌈log₂ N⌉ rounds; r of the places, equal ones share
    A_i  = (r_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

The seeded knockout, the paper's choice, ranks nearly as well as a round robin, at a cost linear in
N. The authors' examples use the anchor. Their Swiss code adds points to the wrong players; this
recipe follows the description. Ranks have no margins, so a group of nearly equal responses has full
advantages. A group whose comparisons are all draws has no advantages (ours). In a knockout,
responses of equal mean score share the mean of their places (ours); the authors' code orders them.

`compare` judges two responses. Its default is the verifier's outcome. The authors use a model that
reads whole trajectories in both orders, and count its failure as 5 against 5. Here a failure is a
draw, and a response without any readable comparison has no reward.

Left out: the authors' judge (use `--judge`); double elimination.
Reports: Qwen3-8B on Open-Travel and Open-DeepResearch: above GRPO and GSPO on scores of single
answers (no numbers).
Traps: With the default outcomes of 0 and 1, a group has two places, as with GRPO; use a judge as
`compare`. Seeds depend on the first row.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from rlvr_jax.experience import compare_by, experience, tournament
from rlvr_jax.experience.rewards.tournaments import (
    Pairs,
    Rounds,
    Schedule,
    Scores,
    round_robin,
    scored_matches,
)
from rlvr_jax.experience.stages.rewards.tournament import Compare
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe, Shown
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon


class Arena(NamedTuple):
    """A tournament.

    Fields:
      schedule: (players, rounds) -> pairs of the next round.
      reward: (players, rounds) -> rewards.
    """

    schedule: Schedule
    reward: Callable[..., np.ndarray]

    def __repr__(self) -> str:
        return f"Arena({self.schedule.__name__}, {self.reward.__name__})"


def anchor(players: int, rounds: Rounds) -> Pairs:
    """Everyone meets the first."""
    return [] if rounds else [(player, 0) for player in range(1, players)]


def by_anchor(players: int, rounds: Rounds) -> Scores:
    """Ranks of the scores against the first."""
    return rank_rewards(ranks(anchor_scores(players, rounds)))


def anchor_scores(players: int, rounds: Rounds) -> Scores:
    """The score of each against the first, and the mean of the first's own scores.

    A player without a score has the mean of the other players; 0 without any score.
    """
    own = [np.mean(scores) if scores else np.nan for scores in _scores(players, rounds[:1])]
    known = [score for score in own if not np.isnan(score)]
    return np.nan_to_num(np.array(own), nan=np.mean(known) if known else 0.0)


def _scores(players: int, rounds: Rounds) -> list[list[float]]:
    """All scores of each player, in order."""
    found: list[list[float]] = [[] for _ in range(players)]
    for first, second, one, other in scored_matches(rounds):
        found[first].append(one)
        found[second].append(other)
    return found


def ranks(scores: Scores) -> Int[np.ndarray, "N"]:
    """1 for the best; equal scores have the best place among them."""
    return 1 + np.sum(scores[None] > scores[:, None], axis=1)


def rank_rewards(rank: Int[np.ndarray, "N"]) -> Scores:
    """(k - rank) / (k - 1), k the last rank: from 1 to 0; 0 if all are equal."""
    last = rank.max()
    return (last - rank) / max(last - 1, 1)


def by_wins(players: int, rounds: Rounds) -> Scores:
    """Ranks of the wins."""
    return rank_rewards(ranks(wins(players, rounds)))


def wins(players: int, rounds: Rounds) -> Scores:
    """Wins of each; a draw and an unreadable comparison are half a win."""
    found = np.zeros(players)
    for first, second, one, other in itertools.chain(*rounds):
        ahead = np.nan_to_num(np.sign(one - other))
        found[first] += 0.5 + 0.5 * ahead
        found[second] += 0.5 - 0.5 * ahead
    return found


def seeded_knockout(players: int, rounds: Rounds) -> Pairs:
    """The anchor's scores are seeds; then neighbours of the bracket meet and the better advance.

    With equal scores the first of the pair advances. The last of an odd number advances without a
    match and is first in the next round.
    """
    if not rounds:
        return anchor(players, rounds)
    order = np.argsort(-anchor_scores(players, rounds), kind="stable")
    left = [int(order[slot]) for slot in bracket(players)]
    for matches in rounds[1:]:
        won = [m.second if m.second_score > m.first_score else m.first for m in matches]
        left = ([left[-1]] if len(left) % 2 else []) + won
    return [(left[place], left[place + 1]) for place in range(0, len(left) - 1, 2)]


def bracket(players: int) -> list[int]:
    """The order of seeds in a knockout in which the best two meet last: 0, 3, 1, 2 of four."""
    slots = [0]
    while len(slots) < players:
        size = 2 * len(slots)
        slots = [seed for slot in slots for seed in (slot, size - 1 - slot)]
    return [slot for slot in slots if slot < players]


def by_knockout(players: int, rounds: Rounds) -> Scores:
    """Places of a knockout; responses of equal mean score share the mean of theirs."""
    place, mean = knockout_places(players, rounds), mean_scores(players, rounds)
    return place_rewards(np.array([place[mean == own].mean() for own in mean]))


def knockout_places(players: int, rounds: Rounds) -> Int[np.ndarray, "N"]:
    """The place of each after a seeded knockout, 1 for the champion; no two are equal.

    Those who lost in one round are ordered by their `mean_scores`.
    """
    mean = mean_scores(players, rounds)
    order: list[int] = []
    for matches in rounds[:0:-1]:
        lost = [s if not other > one else f for f, s, one, other in matches]
        order += sorted(lost, key=lambda player: (-mean[player], player))
    champion = [player for player in range(players) if player not in order]
    place = np.empty(players, int)
    place[[*champion, *order]] = 1 + np.arange(players)
    return place


def mean_scores(players: int, rounds: Rounds) -> Scores:
    """The mean of each player's seed (`anchor_scores`) and scores in the matches of a knockout."""
    seeds, later = anchor_scores(players, rounds), _scores(players, rounds[1:])
    return np.array([np.mean([seed, *own]) for seed, own in zip(seeds, later, strict=True)])


def place_rewards(place: Scores) -> Scores:
    """1 - (place - 1) / (N - 1); 0 of one player."""
    others = len(place) - 1
    return 1 - (place - 1) / others if others else np.zeros(1)


def swiss(players: int, rounds: Rounds) -> Pairs:
    """⌈log₂ N⌉ rounds in which neighbours of the standings meet who have not met before.

    Of an odd number the last who has not yet paused pauses.
    """
    if len(rounds) >= math.ceil(math.log2(players)):
        return []
    standings = swiss_standings(players, rounds)
    order = sorted(range(players), key=standings.__getitem__, reverse=True)
    if players % 2:
        paused = {p for matches in rounds for p in _idle(players, matches)}
        order.remove(next(p for p in reversed(order) if p not in paused))
    met = {tuple(sorted(match[:2])) for match in itertools.chain(*rounds)}
    return _unmet_pairs(order, met) or [(order[k], order[k + 1]) for k in range(0, len(order), 2)]


def swiss_standings(players: int, rounds: Rounds) -> list[tuple[float, float]]:
    """Points of each (a win 1, a draw ½, a pause 1), and the points of the opponents."""
    points, opponents = wins(players, rounds), np.zeros(players)
    for matches in rounds:
        points[list(_idle(players, matches))] += 1
    for match in itertools.chain(*rounds):
        opponents[match.first] += points[match.second]
        opponents[match.second] += points[match.first]
    return list(zip(points.tolist(), opponents.tolist(), strict=True))


def _idle(players, matches):
    return set(range(players)) - {player for match in matches for player in match[:2]}


def _unmet_pairs(left, met):
    """The first way to pair all players with new opponents; None: there is none."""
    if not left:
        return []
    player, others = left[0], left[1:]
    for other in others:
        if tuple(sorted((player, other))) not in met:
            rest = _unmet_pairs([p for p in others if p != other], met)
            if rest is not None:
                return [(player, other), *rest]
    return None


def by_swiss(players: int, rounds: Rounds) -> Scores:
    """Places of a Swiss tournament."""
    return shared_place_rewards(swiss_ranks(players, rounds))


def swiss_ranks(players: int, rounds: Rounds) -> Int[np.ndarray, "N"]:
    """1 for the best of the standings; equal ones have equal ranks."""
    standings = swiss_standings(players, rounds)
    return np.array([1 + sum(other > own for other in standings) for own in standings])


def shared_place_rewards(rank: Int[np.ndarray, "N"]) -> Scores:
    """`place_rewards`; players of one rank have the mean of the places that they take."""
    number = np.sum(rank[None] == rank[:, None], axis=1)
    return place_rewards(rank + (number - 1) / 2)


ANCHOR = Arena(anchor, by_anchor)
ROBIN = Arena(round_robin, by_wins)
KNOCKOUT = Arena(seeded_knockout, by_knockout)
SWISS = Arena(swiss, by_swiss)


def arena_rl(
    arena: Arena = KNOCKOUT,
    compare: Compare = compare_by(),  # noqa: B008 (a function)
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies clip-higher with the token mean to the ranks of a tournament.

    Args:
      arena: form of the tournament: `KNOCKOUT`, `ANCHOR`, `ROBIN` or `SWISS`.
      compare: (batch, pairs of rows, actor, turn) -> scores of both, metrics, and the judge's
        replies; such as `compare_with(judge)`.
    """
    return Recipe(
        objective=clipped_objective(clip_low, clip_high, epsilon=epsilon),
        experience=experience(stages=[tournament(compare, arena.reward, arena.schedule)]),
    )


METHOD = Method(
    arena_rl,
    changes="reward",
    shown=Shown(
        "brackets",
        "experience/ranked_uniform_groups",
        without={"compare": "compare_by()"},
        hyperparameters={"compare": "rlvr_jax.tasks.brackets_judge:nearer"},
        steps=300,
    ),
)
