"""ArenaRL: ranks the responses of a group by a tournament, and pays by rank."""

import itertools

import numpy as np
import pytest
from comparisons import by_strength, play, said

from rlvr_jax.experience import compare_by, experience, round_robin, tournament
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.judges.arena_rl import (
    ANCHOR,
    KNOCKOUT,
    ROBIN,
    SWISS,
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

ARENAS = [KNOCKOUT, ANCHOR, ROBIN, SWISS]


ROUNDED = 1e-6  # the examples have six digits


def saying(scores):
    """Compares by a function of the places (in their groups) of two answers."""

    def compare(batch, pairs, actor, turn):
        del batch, actor, turn
        return np.array([scores(first % 4, second % 4) for first, second in pairs]), {}, ()

    return compare


def rewards(arena, scores):
    """The rewards of four groups of four."""
    stage = tournament(saying(scores), arena.reward, arena.schedule)
    (collected, *_) = numpy_actor.walk(experience(stages=[stage]), steps=1)[0]
    rollouts = collected.batch.rollouts
    return np.where(rollouts.valid, rollouts.reward, np.nan).reshape(4, 4), collected.metrics


@pytest.mark.parametrize("arena", ARENAS, ids=repr)
def test_a_group_of_draws_is_not_ranked_by_its_order(arena):
    earned, told = rewards(arena, lambda first, second: (5.0, 5.0))
    np.testing.assert_array_equal(earned, 0)
    assert "rows_without_reward" not in told


@pytest.mark.parametrize("arena", ARENAS, ids=repr)
def test_an_answer_that_nobody_can_compare_has_no_reward_and_the_others_do(arena):
    def scores(first, second):
        return (np.nan, np.nan) if 2 in (first, second) else (float(first), float(second))

    earned, told = rewards(arena, scores)
    assert np.isnan(earned[:, 2]).all() and told["rows_without_reward"] == 4
    # The better the answer the better the reward, as far as it has met the others.
    assert (np.diff(earned[:, [0, 1, 3]], axis=1) >= 0).all()
    assert (earned[:, 3] > earned[:, 0]).all()


def test_the_anchor_of_the_worked_example():
    rounds = play(4, anchor, said({(1, 0): (7, 5), (2, 0): (4, 6), (3, 0): (7, 5)}))
    scores = anchor_scores(4, rounds)
    np.testing.assert_allclose(scores, [16 / 3, 7, 4, 7])
    np.testing.assert_array_equal(ranks(scores), [3, 1, 4, 1])
    reward = rank_rewards(ranks(scores))
    np.testing.assert_allclose(reward, [1 / 3, 1, 0, 1])
    advantage = (reward - reward.mean()) / (reward.std(ddof=1) + 1e-6)
    np.testing.assert_allclose(advantage, [-0.499999, 0.833332, -1.166664, 0.833332], atol=ROUNDED)


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


def test_equal_responses_of_a_mixed_group_share_a_place():
    # The first and the third are correct, with the places 1 and 2 in one order or the other.
    earned, _ = rewards(KNOCKOUT, lambda first, second: (1.0 - first % 2, 1.0 - second % 2))
    np.testing.assert_allclose(earned, np.tile([5 / 6, 1 / 6], (4, 2)))


def test_groups_that_are_ranked_with_equal_outcomes_are_counted():
    def ranked(compare):
        stage = tournament(compare, KNOCKOUT.reward, KNOCKOUT.schedule)
        ((collected, _, _),) = numpy_actor.walk(experience(stages=[stage]), steps=1)
        outcomes = collected.batch.outcomes()
        uniform = (outcomes == outcomes[:, :1]).all(axis=1).sum()
        return collected.metrics["ranked_uniform_groups"], uniform

    number, uniform = ranked(saying(lambda first, second: (float(first), float(second))))
    assert number == uniform > 0
    assert ranked(compare_by())[0] == 0
