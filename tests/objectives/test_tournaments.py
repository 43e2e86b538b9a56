"""Tournaments: the worked examples, who meets whom, and what no judge can say."""

import itertools

import numpy as np
import pytest

from rlvr_jax.experience import round_robin
from rlvr_jax.experience.rewards import tournaments
from rlvr_jax.methods.judges.arena_rl import (
    anchor,
    anchor_scores,
    bracket,
    knockout_places,
    place_rewards,
    rank_rewards,
    ranks,
    seeded_knockout,
    shared_place_rewards,
    swiss,
    swiss_ranks,
    wins,
)
from rlvr_jax.methods.judges.think_rm import difference_advantage, difference_table

ROUNDED = 1e-6  # the examples have six digits


def play(players, schedule, judge):
    """The rounds of one group."""
    return tournaments.play([range(players)], schedule, judge)[0]


def by_strength(strength):
    """A judge who always sees the stronger one."""
    return lambda pairs: np.array([[strength[i], strength[j]] for i, j in pairs])


def said(scores):
    """A judge who says what stands in a table; NaN of other pairs."""
    nothing = (np.nan, np.nan)
    return lambda pairs: np.array([scores.get(pair, nothing) for pair in pairs])


def test_the_anchor_of_the_worked_example():
    rounds = play(4, anchor, said({(1, 0): (7, 5), (2, 0): (4, 6), (3, 0): (7, 5)}))
    scores = anchor_scores(4, rounds)
    np.testing.assert_allclose(scores, [16 / 3, 7, 4, 7])
    np.testing.assert_array_equal(ranks(scores), [3, 1, 4, 1])
    reward = rank_rewards(ranks(scores))
    np.testing.assert_allclose(reward, [1 / 3, 1, 0, 1])
    advantage = (reward - reward.mean()) / (reward.std(ddof=1) + 1e-6)
    np.testing.assert_allclose(advantage, [-0.499999, 0.833332, -1.166664, 0.833332], atol=ROUNDED)


def test_the_strengths_of_the_worked_example():
    rounds = play(3, round_robin, said({(0, 1): (2, 0), (0, 2): (-1, 0), (1, 2): (3, 0)}))
    table = difference_table(3, rounds)
    np.testing.assert_array_equal(table, [[0, 2, -1], [-2, 0, 3], [1, -3, 0]])
    np.testing.assert_allclose(
        difference_advantage(table), [0.218218, 0.218218, -0.436435], atol=ROUNDED
    )
    unreadable = difference_table(3, play(3, round_robin, said({})))
    np.testing.assert_array_equal(difference_advantage(unreadable), 0)


def test_differences_of_rewards_are_their_normalized_advantage():
    reward = np.random.default_rng(0).normal(size=5)
    table = difference_table(5, play(5, round_robin, by_strength(reward)))
    wanted = (reward - reward.mean()) / np.sqrt(reward.var(ddof=1) + 1e-6)
    np.testing.assert_allclose(difference_advantage(table), wanted, rtol=1e-12)  # float64


@pytest.mark.parametrize("players", [2, 3, 5, 6, 8, 11])
@pytest.mark.parametrize("schedule", [anchor, round_robin, seeded_knockout, swiss])
def test_the_strongest_wins_and_everyone_has_met_somebody(players, schedule):
    strength = np.random.default_rng(players).permutation(players).astype(float)
    rounds = play(players, schedule, by_strength(strength))
    champion = int(strength.argmax())
    met = [match for matches in rounds for match in matches]
    assert {p for match in met for p in match[:2]} == set(range(players))
    if schedule is anchor:
        assert len(met) == players - 1 and ranks(anchor_scores(players, rounds))[champion] == 1
    elif schedule is round_robin:
        assert len(met) == players * (players - 1) // 2
        np.testing.assert_array_equal(wins(players, rounds), strength)
    elif schedule is seeded_knockout:
        place = knockout_places(players, rounds)
        assert len(met) == 2 * (players - 1) and place[champion] == 1
        assert sorted(place) == list(range(1, players + 1))
        assert sorted(place_rewards(place)) == pytest.approx(np.linspace(0, 1, players))
    else:
        assert len(rounds) == int(np.ceil(np.log2(players)))
        assert swiss_ranks(players, rounds)[champion] == 1
        pairs = [tuple(sorted(match[:2])) for match in met]
        assert players < 5 or len(set(pairs)) == len(pairs)


def test_the_best_two_seeds_of_a_bracket_meet_last():
    assert bracket(4) == [0, 3, 1, 2] and bracket(6) == [0, 3, 4, 1, 2, 5]


def test_equal_players_share_their_places():
    np.testing.assert_allclose(shared_place_rewards(np.array([1, 2, 2, 4])), [1, 0.5, 0.5, 0])
    np.testing.assert_array_equal(rank_rewards(np.array([1, 1, 1])), 0)
    np.testing.assert_array_equal(place_rewards(np.array([1])), 0)


@pytest.mark.parametrize("schedule", [anchor, round_robin, seeded_knockout, swiss])
def test_nobody_meets_alone_and_a_silent_judge_moves_nobody_up(schedule):
    assert play(1, schedule, said({})) == [] == play(0, schedule, said({}))
    rounds = play(4, schedule, said({}))
    met = np.bincount([p for matches in rounds for match in matches for p in match[:2]])
    np.testing.assert_array_equal(wins(4, rounds), met / 2)


def test_who_could_not_be_compared_is_a_middling_seed():
    rounds = play(4, anchor, said({(1, 0): (9, 3), (2, 0): (2, 8)}))
    np.testing.assert_array_equal(anchor_scores(4, rounds), [5.5, 9, 2, 5.5])
    # The third in the middle of the bracket, then beaten or not by what is said of it there.
    scores = {(1, 0): (9, 3), (2, 0): (2, 8), (1, 2): (7, 1), (0, 3): (2, 9), (1, 3): (8, 6)}
    places = knockout_places(4, play(4, seeded_knockout, said(scores)))
    np.testing.assert_array_equal(places, [3, 1, 4, 2])


def test_all_orders_of_four_strengths_are_ranked_by_a_round_robin():
    for strength in itertools.permutations(range(4)):
        rounds = play(4, round_robin, by_strength(strength))
        np.testing.assert_array_equal(ranks(wins(4, rounds)), 4 - np.array(strength))
