"""Searches over whole answers under edited prompts, and the memory that they fill."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.experience.draws.trees.answers import compared_value, optimism, search_answers
from rlvr_jax.experience.memory import Insights


def test_a_search_of_answers_climbs_where_edits_help():
    def write(prompt):
        return min(len(prompt), 6)

    found = search_answers("", write, lambda p, *_: p + "x", lambda answer: answer / 6, 10)
    assert max(found.rewards) == 1.0 and len(found.nodes) == 11
    assert found.rewards[0] == 0.0 and found.nodes.parent[1] == 0
    assert found.nodes.value[1:].min() > 0


def test_a_value_is_by_how_much_an_answer_is_better():
    assert compared_value(1, 0) == 1 and compared_value(0.5, 0.5) == 0.5
    found = optimism(np.array([0.4, 0.4]), np.array([0, 3]), np.array([5, 5]), 1.0)
    assert_allclose(found, 0.4 + np.sqrt(np.log(6) / np.array([1, 4])))


def test_the_worked_example_of_the_memory():
    memory = Insights()
    for number, text in enumerate(("use units", "check signs", "check units")):
        memory, given = memory.add(text)
        assert given == number
    memory = memory.merge([1, 2], "check signs and units")
    assert sorted(memory.texts) == [0, 1]
    with pytest.raises(KeyError, match=r"numbers must be among \[0, 1\], got \[2\]"):
        memory.modify(2, "no")
    assert memory.retrieve("check the signs", 2) == [1]
    memory, given = memory.add("last")
    assert given == 3
    assert sorted(memory.delete(0).texts) == [1, 3]
    assert memory.modify(3, "newest").texts[3] == "newest"
    assert memory.retrieve("units", 5) == [0, 1]
