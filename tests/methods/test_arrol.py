"""ARRoL: rows are pruned while they are sampled, so that about half of those left are correct."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from tree_walks import walked

from rlvr_jax.experience import plain
from rlvr_jax.experience.draws.trees.heads import fitted, new_head
from rlvr_jax.methods.off_policy.arrol import (
    area_under_curve,
    head_gradient,
    head_scores,
    prune,
    pruned_choice,
)

PRINTED = 5e-7  # half a unit of the sixth digit


def test_the_worked_example_of_pruning():
    quality = np.array([0.9, 0.1, 0.6, 0.4, 0.8, 0.2])
    finished = np.zeros(6, bool)
    found = pruned_choice(quality, finished, 3, 0.5)
    assert_array_equal(found, [1, 1, 0, 0, 1, 0])
    finished[2] = True
    found = pruned_choice(quality, finished, 3, 0.5)
    assert_array_equal(found, [1, 1, 1, 0, 0, 0])


def test_equal_qualities_keep_the_earlier_rows():
    found = pruned_choice(np.full(4, 0.5), np.zeros(4, bool), 2, 0.5)
    assert_array_equal(found, [1, 1, 0, 0])
    finished = np.array([True] * 3 + [False])
    assert_array_equal(pruned_choice(np.zeros(4), finished, 2, 0.5), [1, 1, 1, 0])


def test_the_worked_example_of_the_head():
    weights = np.array([1.0, -1, 0])
    hidden, outcome = np.array([[1.0, 0], [0, 2]]), np.array([1.0, 0])
    everything = np.ones(2, bool)
    assert_allclose(head_scores(weights, hidden), [0.731059, 0.119203], atol=PRINTED)
    gradient = head_gradient(weights, hidden, outcome, everything)
    assert_allclose(gradient, [-0.134471, 0.119203, -0.074869], atol=PRINTED)


def test_a_head_learns_what_tells_right_from_wrong():
    random = np.random.default_rng(0)
    hidden = random.normal(size=(200, 3))
    outcome = (hidden[:, 1] > 0).astype(float)
    head = new_head(3)
    for _ in range(100):
        gradient = head_gradient(head["weights"], hidden, outcome, np.ones(200, bool))
        head = fitted(head, gradient, rate=0.1)
    assert area_under_curve(head_scores(head["weights"], hidden), outcome) > 0.99
    assert not head_gradient(head["weights"], hidden, outcome, np.zeros(200, bool)).any()


def test_an_area_counts_ties_half():
    assert area_under_curve(np.array([1.0, 2, 2]), np.array([0, 1, 0])) == 0.75
    assert area_under_curve(np.array([1.0, 2]), np.ones(2)) == 0.5


def test_pruning_leaves_half_of_all_groups_but_those_of_control():
    for found in walked(prune(least_area=0.0, control=3), samples=6):
        sizes = [len(rows) for rows in found.batch.groups]
        assert sizes[0] == sizes[3] == 6
        # Rows that ended before the check stay, however many there are.
        assert sizes[1] >= 3 and sizes[2] >= 3
        assert found.metrics["pruned_rows"] == 24 - sum(sizes)
    assert sum(found.metrics["pruned_rows"] for found in walked(prune(least_area=0.0))) > 0
    plainly = walked(plain())
    for found, other in zip(walked(prune(least_area=1.0)), plainly, strict=True):
        assert len(found.batch) == len(other.batch)
