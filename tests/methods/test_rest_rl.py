"""ReST-RL's search over lines, on trees that are counted by hand."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.methods.trees.rest_rl import Continued, best_whole, search_lines, value_targets

FLOAT32 = 1e-6  # the bound is computed in it, what is backed up is not


def drawing(table):
    """Answers in lines of one letter each, by the letters before them."""

    def draw(state):
        return [
            Continued(rest[0], state + rest[0], state + rest, len(rest) == 1)
            for rest in table[state]
        ]

    return draw


def scoring(scores):
    return lambda wholes: [scores[whole] for whole in wholes]


TABLE = {"": ["ab", "c", "ad", "e", "fg"], "a": ["b", "d"]}
SCORES = {"ab": 1.0, "c": 0.5, "ad": 0.0, "e": 0.0, "fg": 0.25}


def test_answers_are_what_a_leaf_is_visited_with():
    found = search_lines("", drawing(TABLE), scoring(SCORES), 1)
    assert found.states == ["", "a", "c", "e", "f"]
    assert_array_equal(found.nodes.visits, [5, 0, 0, 0, 0])
    assert_allclose(found.nodes.value, [1.75, 0, 0, 0, 0])
    # Nobody has visited the children: the first three are seen.
    assert_array_equal(found.visible, [True, True, True, True, False])
    assert_array_equal(found.ends, [False, False, True, True, False])
    assert found.scored == [("ab", 1.0), ("c", 0.5), ("ad", 0.0), ("e", 0.0), ("fg", 0.25)]
    assert value_targets(found) == [("", 0.35)] and best_whole(found) == "ab"


def test_an_end_is_scored_once_and_adds_its_value_from_then_on():
    # a is expanded, then the ends c and e are reached, each for the first time.
    found = search_lines("", drawing(TABLE), scoring(SCORES), 4, constant=10.0)
    assert_array_equal(found.nodes.visits, [9, 2, 1, 1, 0, 0, 0])
    assert_allclose(found.nodes.value, [3.25, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0])
    assert value_targets(found) == [("", 3.25 / 9), ("a", 0.5), ("c", 0.5), ("e", 0.0)]
    # Now c: 0.5 + 10 √((1 + ln 9) / 1.1), above e, whose V is 0, and a, which has two visits.
    scored = []

    def score(wholes):
        scored.extend(wholes)
        return scoring(SCORES)(wholes)

    again = search_lines("", drawing(TABLE), score, 5, constant=10.0)
    assert scored.count("c") == 2  # where it was drawn, and where it was reached first
    assert_array_equal(again.nodes.visits[:4], [10, 2, 2, 1])
    assert_allclose(again.nodes.value[:4], [3.75, 1.0, 1.0, 0.0])


def test_the_bound_decides_who_is_next():
    # V of a is 0.5 with two visits, of c 0.5 with one, of e 0: c is next, by its fewer visits.
    bound = [v + 10 * math.sqrt((1 + math.log(9)) / (0.1 + n)) for v, n in ((0.5, 2), (0.5, 1))]
    assert bound[1] - bound[0] > FLOAT32
    # Without exploration the best value is followed: a is expanded, of 0.5, and c never passes it.
    found = search_lines("", drawing(TABLE), scoring(SCORES), 6, constant=0.0)
    assert found.nodes.visits[3] == 0 and found.nodes.visits[2] == 0


def test_a_model_of_values_visits_children_as_they_are_made():
    values = {"a": 0.4, "c": 0.9, "e": 0.1, "f": 0.8, "ab": 0.6, "ad": 0.2}
    found = search_lines("", drawing(TABLE), scoring(SCORES), 1, constant=0.1, value=values.get)
    # Two answers begin with a; the three best are seen.
    assert_array_equal(found.nodes.visits, [5, 2, 1, 1, 1])
    assert_allclose(found.nodes.value, [2.6, 0.8, 0.9, 0.1, 0.8])
    assert_array_equal(found.visible, [True, True, True, False, True])
    # c is best and ends: its own value is added, and its score is not asked again.
    found = search_lines("", drawing(TABLE), scoring(SCORES), 2, constant=0.1, value=values.get)
    assert_array_equal(found.nodes.visits, [6, 2, 2, 1, 1])
    assert_allclose(found.nodes.value, [3.5, 0.8, 1.8, 0.1, 0.8])
    assert best_whole(found) == "ab" and len(found.scored) == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"iterations": 0}, "search_lines: iterations must be at least 1, got 0"),
        ({"decisions": 0}, "search_lines: decisions must be at least 1, got 0"),
        ({"constant": -1.0}, "search_lines: constant must be at least 0, got -1"),
        ({"epsilon": 0.0}, "search_lines: epsilon must be positive, got 0"),
    ],
)
def test_numbers_out_of_range_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        search_lines("", drawing(TABLE), scoring(SCORES), **{"iterations": 1, **given})


def test_nothing_drawn_is_an_error():
    with pytest.raises(ValueError, match="search_lines: draw must give an answer, got none"):
        search_lines("", lambda state: [], lambda wholes: np.zeros(len(wholes)), 1)
