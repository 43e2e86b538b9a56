"""Diversity among the right rollouts of a group."""

import numpy as np
import pytest
from golden_vectors import array, assert_agrees
from training_runs import trained, values

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.exploration.dsdr import (
    diversity_weights,
    equations,
    find_formulas,
    formula_uniqueness,
    semantic_distance,
)

GROUP = array([7, 7, 7, 2, 2], np.int32)


RIGHT = array([True, True, False, True, False], bool)


def test_distances_are_those_of_the_right_peers():
    embedding = array([[1, 0], [0, 2], [5, 5], [1, 1], [1, 0]], np.float64)
    found = semantic_distance(embedding, RIGHT, GROUP)
    assert_agrees(found, [0.5, 0.5, 0, 0, 0])  # cosine 0; wrong, alone and wrong


def test_a_zero_embedding_is_half_way_from_everything():
    embedding = array(np.zeros((5, 2)), np.float64)
    assert_agrees(semantic_distance(embedding, RIGHT, GROUP), [0.5, 0.5, 0, 0, 0])


def test_shares_count_different_formulas_that_no_right_peer_has():
    formulas = array(
        [[4, 4, 9, -1], [9, 3, 2, 2], [1, 2, 3, 4], [5, 6, 7, 8], [5, -1, -1, -1]], np.int32
    )
    found = formula_uniqueness(formulas, RIGHT, GROUP)
    assert_agrees(found, [1 / 2, 2 / 3, 0, 0, 0])


def test_shares_agree_with_sets():
    random = np.random.default_rng(5)
    formulas = random.integers(-1, 6, (12, 4))
    group, correct = random.integers(0, 3, 12), random.random(12) < 0.7
    found = formula_uniqueness(
        array(formulas, np.int32), array(correct, bool), array(group, np.int32)
    )
    for row in range(12):
        own = set(formulas[row]) - {-1}
        peers = [j for j in range(12) if j != row and correct[j] and group[j] == group[row]]
        others = set().union(*(set(formulas[j]) for j in peers)) if peers else set()
        expected = len(own - others) / len(own) if own and peers and correct[row] else 0
        assert np.isclose(found[row], expected, rtol=1e-12)


def test_weights_sum_to_one_over_right_rows_and_are_zero_elsewhere():
    values = array([1000.0, 0.0, 3.0, 0.5, 0.5], np.float64)
    weights = np.asarray(diversity_weights(values, RIGHT, GROUP, 1.0))
    assert_agrees(weights, [1, 0, 0, 1, 0])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("so 3 + 4 = 7, and x = y = 2.", ["3+4=7", "x=y=2"]),
        (r"with $a^2 = b$ and \(c\) or \[d\]", ["a^2=b", "c", "d"]),
        ("five apples = many, =", []),
        ("", []),
    ],
)
def test_formulas_are_found(text, found):
    assert equations(text) == found


def test_equal_formulas_have_one_id():
    chain = experience(stages=[find_formulas(str.split, most=3)])
    ((collected, _, _),) = numpy_actor.walk(chain, steps=1)
    ids, texts = collected.batch.rollouts.records["formulas"], collected.batch.responses
    known = {}
    for row, response in zip(ids, texts, strict=True):
        words = response.text.split()[:3]
        assert np.sum(row >= 0) == len(words)
        for number, word in zip(row.tolist(), words, strict=False):
            assert known.setdefault(word, number) == number
    assert len(set(known.values())) == len(known) > 3


@pytest.mark.slow
def test_right_answers_that_differ_are_paid(model, tmp_path):
    lines = trained(model, tmp_path / "run", "dsdr", samples_per_prompt=8)
    assert len(values(lines, "experience/formulas")) == 2
    reward, outcome = (np.array(values(lines, name)) for name in ("reward", "outcome"))
    assert np.all(reward >= outcome) and np.any(reward > outcome)
    # What is mixed has a curve of its own before.
    diversity = np.array(values(lines, "experience/reward/diversity"))
    np.testing.assert_allclose(reward, outcome + 0.1 * diversity, rtol=1e-5)
