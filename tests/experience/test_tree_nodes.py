"""The store of a search's nodes, its back-ups and choices, and pieces that share beginnings."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trees import two_trees

from rlvr_jax.experience import SampleRequest
from rlvr_jax.experience.draws.trees.branching import branch_probability, first_entropy
from rlvr_jax.experience.draws.trees.nodes import (
    back_up_mixed,
    children,
    path_to,
    roots,
    upper_confidence,
    with_nodes,
)
from rlvr_jax.experience.draws.trees.segments import Segments, first_samples, kinship
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.laws.numbered_task import numbered_task


def test_nodes_know_their_tree_depth_and_tokens():
    nodes = two_trees()
    assert_array_equal(nodes.tree, [0, 1, 0, 0, 0, 0, 1])
    assert_array_equal(nodes.depth, [0, 0, 1, 1, 2, 2, 1])
    assert_array_equal(nodes.stop, [0, 0, 2, 3, 5, 4, 2])
    assert_array_equal(path_to(nodes, 5), [0, 3, 5])
    assert_array_equal(children(nodes, 3), [4, 5])
    assert len(children(nodes, 5)) == 0 and not nodes.visits.any()


@pytest.mark.parametrize(
    ("parent", "stop", "message"),
    [
        ([7], [1], "parent must be among the 7 nodes, got"),
        ([-1], [1], "parent must be among the 7 nodes, got"),
        ([4], [4], "stop must be at least .5., the stops of the parents, got .4."),
    ],
)
def test_nodes_that_cannot_be_are_refused(parent, stop, message):
    with pytest.raises(ValueError, match=message):
        with_nodes(two_trees(), parent, stop)


def test_a_mixed_back_up_is_the_worked_example():
    nodes = with_nodes(with_nodes(roots(1), [0]), [1])
    nodes.value[:] = [0.2, 0.4, 0]
    nodes = back_up_mixed(nodes, path_to(nodes, 2), 0.8, fraction=0.5)
    assert_allclose(nodes.value, [0.4, 0.6, 0.8])
    assert_array_equal(nodes.visits, [1, 1, 1])


def test_what_was_never_visited_gets_no_bonus():
    found = upper_confidence(np.array([2.0, 1, 5]), np.array([4, 1, 0]), 5, 2.0)
    wanted = [0.5 + 2 * np.sqrt(np.log(5) / 4), 1 + 2 * np.sqrt(np.log(5)), 0]
    assert_allclose(found, wanted)


def test_a_row_branched_off_the_first_one_that_shares_most_with_it():
    source = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 1], [3, 3, 3], [0, 4, 4], [5, 5, -1]])
    parent, position = kinship(source, np.array([0, 0, 0, 0, 0, 1]))
    assert_array_equal(parent, [-1, 0, 1, -1, 0, -1])
    assert_array_equal(position, [-1, 2, 3, -1, 1, -1])


def test_samples_of_a_prompt_that_is_asked_twice_are_numbered_on():
    task = numbered_task()
    requests = [SampleRequest(task.train[n], n, samples) for n, samples in ((3, 2), (1, 4), (3, 5))]
    assert_array_equal(first_samples(requests), [0, 0, 2])


def test_responses_have_the_records_of_the_pieces_that_drew_them():
    actor, task = numpy_actor.NumpyActor(), numbered_task()
    request = SampleRequest(task.train[0], 0, 3)
    segments = Segments(actor, jax.random.key(3), {"record_top": 2})
    first = segments.draw([request] * 2, [0, 1], [-1, -1], [0, 0], limit=3)
    length = segments.batch.rollouts.length[first]
    assert_array_equal(length, [3, 3])  # of this key neither ends
    second = segments.draw([request] * 2, [0, 2], [0, 0], [3, 2], limit=None)
    batch = segments.responses([*second, 1], [request])
    rollouts, whole = batch.rollouts, segments.batch.rollouts
    assert "sampled_topk_logp" not in rollouts.records and len(batch.requests) == 3
    for name in ("tokens", "behaviour_logp", "entropy"):
        found, known = rollouts.get(name), whole.get(name)
        assert_array_equal(found[0, :3], known[0, :3])
        assert_array_equal(found[0, 3:], known[2, 3:])
        assert_array_equal(found[1, :2], known[0, :2])
        assert_array_equal(found[2], known[1])
    places = np.arange(rollouts.mask.shape[1])[None]
    assert_array_equal(rollouts.mask, places < rollouts.length[:, None])
    assert_array_equal(rollouts.parent, [-1, 0, -1])
    assert_array_equal(rollouts.branch_position, [-1, 2, -1])
    assert_array_equal(segments.new_tokens(second), whole.mask[second])


def test_an_entropy_is_a_sum_over_the_first_tokens():
    p = np.array([0.5, 0.25])
    topk = np.broadcast_to(np.log(p), (2, 4, 2))
    tokens = np.array([[False, True, True, True], [True, False, False, False]])
    one = -(p * np.log(p)).sum() / np.log(7)
    assert_allclose(first_entropy(topk, tokens, 2, 7), [2 * one, one])


def test_more_entropy_is_more_branching_and_forks_damp_it():
    delta = np.array([-3.0, 0, 1, 3])
    assert_allclose(branch_probability(delta, 0.2), [0, 0.5, 0.7, 1])
    damped = branch_probability(delta, 0.2, damping=np.array([0.5, 0.5, 0.8, 0.0]))
    assert_allclose(damped, [0, 0, 1 - 0.5 / 0.8 + 0.2, 0])
