"""Worked solutions that are played with an environment: what it says is read, not imitated."""

from dataclasses import replace

import numpy as np
import pytest
from small_environments import Counting

from rlvr_jax.experience import experience, imitate_turns
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.objectives import TOOL, own_words
from rlvr_jax.tools import Reply


class Solved(Counting):
    """Answers every step of a solution but "third"."""

    def reply(self, state, text):
        if text == "third":
            return Reply(state)
        return Reply(state + 1, "c", info={"answered": 1.0})


def collected(environment, budget=16, **changes):
    actor = numpy_actor.NumpyActor(response_tokens=budget)
    chain = experience(stages=[imitate_turns(environment, **changes)])
    own = replace(numpy_actor.setting(chain), response_tokens=budget)
    ((found, _, _),) = numpy_actor.walk(chain, actor, steps=1, own=own)
    return actor, found


def test_replies_stand_between_the_steps_and_are_not_imitated():
    actor, found = collected(Solved())
    rollouts = found.batch.rollouts
    steps = [actor.encode(step) for step in ("first", "second", "third", "fourth")]
    reply, end = actor.encode("c"), [actor.stop_token()]
    wanted = [*steps[0], *reply, *steps[1], *reply, *steps[2], *steps[3], *end]
    told = [*[0] * len(steps[0]), TOOL, *[0] * len(steps[1]), TOOL]
    told += [0] * (len(wanted) - len(told))
    assert (
        len(found.batch) == 4 and rollouts.records["supervised"].all() and not rollouts.mask.any()
    )
    learned = np.asarray(own_words(rollouts))
    for row in range(4):
        length = rollouts.length[row]
        assert rollouts.tokens[row, :length].tolist() == wanted
        assert rollouts.records["origin"][row, :length].tolist() == told
        np.testing.assert_array_equal(learned[row, :length], np.array(told) == 0)
        assert not learned[row, length:].any()
    assert found.metrics["answered"] == 8 and found.metrics["imitated_solutions"] == 4


def test_a_solution_without_room_for_its_replies_is_left_out():
    _, found = collected(Solved(), budget=14)
    assert found.metrics["solutions_too_long"] == 4 and found.metrics["imitated_solutions"] == 0
    assert not found.batch.rollouts.records["supervised"].any()


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="imitate_turns: reply_tokens must be at least 1, got 0"):
        imitate_turns(reply_tokens=0)
    with pytest.raises(ValueError, match="imitate_turns: environment must be given for task"):
        collected(None)
