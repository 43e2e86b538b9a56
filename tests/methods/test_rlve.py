"""RLVE: the level of every environment rises as the policy learns it."""

import numpy as np
import pytest
from answering import Right

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.curricula.rlve import Levels, adaptive_levels, counted, raised
from rlvr_jax.tasks import Prompt, Task


def test_levels_below_the_highest_say_nothing_and_the_last_one_stays():
    none = np.zeros(1, np.int32)
    levels = Levels(np.array([1], np.int32), none, none)
    place = np.zeros(3, int)
    levels = counted(levels, place, np.array([0, 1, 1]), np.array([True, True, False]))
    assert (levels.correct, levels.answers) == (1, 2)
    assert raised(levels, 3, 0.5, np.array([5])) == levels
    assert raised(levels, 2, 0.5, np.array([5])) == (2, 0, 0)
    assert raised(levels, 2, 0.6, np.array([5])) == (1, 0, 0)
    assert raised(levels, 2, 0.5, np.array([1])) == (1, 0, 0)


def test_each_kind_climbs_by_its_own_answers():
    actor = Right(lambda number: float(number % 2))  # kind "odd" is right, "even" is wrong
    chain = experience(adaptive_levels(window=2, prompts=1, threshold=0.9))
    found = numpy_actor.walk(chain, actor, steps=8)
    assert found[-1][1]["level/odd"] == 2 and found[-1][1]["level/even"] == 0
    high = [0]
    for collected, told, _ in found:
        for request in collected.batch.requests:
            level = request.prompt.meta["level"]  # 0, 1 or 2 in this task
            limit = high[-1] if request.prompt.kind == "odd" else 0
            assert max(0, limit - 1) <= level <= limit
        high.append(int(told["level/odd"]))
    assert high[1] == 1 and sum(told["levels_raised"] for _, told, _ in found) == 2


def test_prompts_without_a_level_are_refused():
    plain = Task("plain", [Prompt("a", meta={"year": 1})], [Prompt("b")], None)
    chain = experience(adaptive_levels(window=2, prompts=1, threshold=0.9))
    wanted = r"""every train prompt must have meta\["level"\], got \{'year': 1\} for 'a'"""
    with pytest.raises(ValueError, match=wanted):
        chain.init(numpy_actor.setting(chain, plain))
    far = experience(adaptive_levels(window=2, prompts=1, threshold=0.9, start=3))
    with pytest.raises(ValueError, match="start must be at most 2, the last level of kind 'even'"):
        far.init(numpy_actor.setting(far))
