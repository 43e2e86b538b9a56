"""A tournament of responses: its metrics, the rows without a reward, and the advantage."""

import numpy as np
import pytest
from answering import Right

from rlvr_jax.experience import compare_by, experience, round_robin, tournament
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.judges.arena_rl import wins

PAIRS = 4 * 6  # of four groups of four


def collected(compare, actor=None, **changes):
    stage = tournament(compare, wins, **changes)
    ((found, _, _),) = numpy_actor.walk(experience(stages=[stage]), actor, steps=1)
    return found


def saying(first_score, second_score, counts=()):
    """A comparison with two scores for each pair, and none for the third answer of a group."""

    def compare(batch, pairs, actor, turn):
        del batch, actor, turn
        unread = [[2 in (first % 4, second % 4)] for first, second in pairs]
        return np.where(unread, np.nan, [first_score, second_score]), dict(counts), ()

    return compare


def worst_first(batch, pairs, actor, turn):
    scores, counts, replies = compare_by()(batch, pairs, actor, turn)
    return -scores, counts, replies


@pytest.mark.parametrize(
    ("compare", "fraction"),
    [(compare_by(), 1.0), (worst_first, 0.0), (saying(5.0, 5.0), 0.5)],
    ids=["the correct one is ahead", "the incorrect one is ahead", "a draw"],
)
def test_wins_of_correct_responses_are_a_fraction_of_their_pairs(compare, fraction):
    assert collected(compare).metrics["correct_wins"] == fraction


def test_without_a_correct_and_an_incorrect_response_there_are_no_wins():
    assert "correct_wins" not in collected(compare_by(), Right(lambda number: 1.0)).metrics


def test_pairs_and_counts_of_all_rounds_are_added_up():
    def twice(players, rounds):
        return [] if len(rounds) == 2 else round_robin(players, ())

    found = collected(saying(2.0, 1.0, {"judge_calls": 1.0}), schedule=twice).metrics
    assert found["compared_pairs"] == 2 * PAIRS
    assert found["unreadable_pairs"] == PAIRS  # three of six pairs of a round
    assert found["judge_calls"] == 2


def test_who_has_no_readable_pair_has_no_reward_whatever_the_scores_of_others_are():
    found = collected(saying(2.0, 1.0))
    assert found.metrics["rows_without_reward"] == 4
    valid = found.batch.rollouts.valid.reshape(4, 4)
    np.testing.assert_array_equal(valid, np.tile([True, True, False, True], (4, 1)))


def test_an_advantage_is_written_where_one_is_given():
    def places(players, rounds):
        del rounds
        return np.arange(players) + 1.0

    rollouts = collected(saying(2.0, 1.0), advantage=places).batch.rollouts
    wanted = np.tile([1.0, 2.0, 3.0, 4.0], 4)[:, None] * rollouts.mask
    np.testing.assert_array_equal(rollouts.records["advantage"], wanted)
    assert tournament(compare_by(), wins).writes == frozenset()
    assert tournament(compare_by(), wins, advantage=places).writes == {"advantage"}
