"""ArenaRL: ranks the responses of a group by a tournament, and pays by rank."""

import numpy as np
import pytest

from rlvr_jax.experience import experience, tournament
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.judges.arena_rl import ANCHOR, KNOCKOUT, ROBIN, SWISS

ARENAS = [KNOCKOUT, ANCHOR, ROBIN, SWISS]


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
    return collected.batch.rollouts.reward.reshape(4, 4), collected.metrics


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
