"""Groups in turns that are trained when they are complete."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from small_environments import PAYOFFS, Counting

from rlvr_jax.experience import experience, queued, queued_turns, turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.objectives import TOOL
from rlvr_jax.tools import repeated_game


def walked(steps=6, **options):
    chain = experience(draw=queued_turns(Counting(), **{"staleness": 2, **options}))
    return [found for found, _, _ in numpy_actor.walk(chain, steps=steps)]


def test_groups_are_whole_and_none_waits_too_long():
    requested, trained = 0, 0
    for step, found in enumerate(walked()):
        counts = found.metrics
        assert [len(rows) for rows in found.batch.groups] == [4] * int(counts["groups"])
        requested, trained = requested + 4, trained + int(counts["groups"])
        assert counts["waiting_groups"] == requested - trained
        assert trained >= 4 * (step - 1)
    assert any(found.metrics["waiting_groups"] > 0 for found in walked())


def test_all_own_tokens_are_trained_with_the_records_of_their_sampling():
    stale = 0
    for found in walked():
        rollouts = found.batch.rollouts
        inside = np.arange(rollouts.mask.shape[1])[None] < rollouts.length[:, None]
        own = inside & (rollouts.records["origin"] != TOOL)
        assert_array_equal(rollouts.mask, own)
        logp = numpy_actor.NumpyActor._logp(rollouts.tokens, 0)
        assert_allclose(rollouts.behaviour_logp[own], logp[own], rtol=1e-6)
        # Turns of the policy are even, replies odd, and every reply follows a turn.
        turn = np.where(inside, rollouts.records["turn"], -1)
        assert np.all(np.where(own, turn % 2 == 0, True))
        assert np.all(np.diff(np.where(inside, turn, turn.max(axis=1, keepdims=True))) >= 0)
        stale += found.metrics["stale_tokens"]
    assert stale > 0


def test_without_staleness_the_responses_are_those_of_turns():
    plain = experience(draw=turns(Counting()))
    for ours, (theirs, _, _) in zip(
        walked(3, staleness=0), numpy_actor.walk(plain, steps=3), strict=True
    ):
        assert ours.metrics["stale_tokens"] == ours.metrics["waiting_groups"] == 0
        for name in ("tokens", "mask", "length", "truncated", "behaviour_logp"):
            one, other = (each.batch.rollouts.get(name) for each in (ours, theirs))
            assert_array_equal(one, other)
        assert ours.metrics["turns"] == theirs.metrics["turns"]


@pytest.mark.parametrize("draw", [queued(0), queued_turns(Counting(), staleness=0)])
def test_a_checkpoint_can_have_the_state_of_a_queue_that_never_waits(draw):
    chain = experience(draw=draw)
    (state,) = chain.init(numpy_actor.setting(chain)).values()
    assert all(np.size(array) for array in state.values())


def test_games_and_negative_staleness_are_refused():
    with pytest.raises(ValueError, match="queued_turns: staleness must be at least 0, got -1"):
        queued_turns(Counting(), staleness=-1)
    game = repeated_game(PAYOFFS, rounds=1, stops=("=",))
    chain = experience(draw=queued_turns(game))
    with pytest.raises(ValueError, match="queued_turns: environment must have one player"):
        chain.init(numpy_actor.setting(chain))
