"""DeepSearch: rollouts are the paths of a Monte Carlo tree search, credited node by node."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tree_walks import walked
from trees import two_trees

from rlvr_jax.experience import experience
from rlvr_jax.experience.draws.trees.nodes import path_to
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.methods.trees.deepsearch import back_up_bounded, search_tree


def test_a_solved_path_is_never_hidden():
    nodes = two_trees()
    nodes = back_up_bounded(nodes, path_to(nodes, 4), -1.0)
    assert_allclose(nodes.value[[0, 3, 4]], [-1 / 3, -2 / 3, -1])
    nodes = back_up_bounded(nodes, path_to(nodes, 5), 1.0)
    assert_allclose(nodes.value[[0, 3, 4, 5]], [1 / 3, 2 / 3, -1, 1])
    nodes = back_up_bounded(nodes, path_to(nodes, 4), -1.0)
    assert_allclose(nodes.value[[0, 3, 4]], [1 / 3, 2 / 3, -2])
    nodes = back_up_bounded(nodes, path_to(nodes, 5), 1.0, least=0.9)
    assert_allclose(nodes.value[[0, 3, 5]], [1 / 3 + 0.9, 2 / 3 + 0.9, 2])
    assert_array_equal(nodes.visits[[0, 3, 4, 5]], [4, 4, 2, 2])


def test_prompts_that_are_often_solved_are_not_searched():
    how = {"node_tokens": 2, "width": 3, "most_expansions": 30, "tries": 4, "most_solved": 0.25}
    skipped = 0
    for found in walked(search_tree(**how)):
        batch, trained = found.batch, 0
        for rows in batch.groups:
            if batch.rollouts.mask[rows].any():
                trained += 1
                continue
            # The plain responses stay, without a reward.
            assert len(rows) == 4 and batch.rollouts.outcome[rows].mean() > 0.25
            assert not batch.rollouts.records["process_reward"][rows].any()
        assert trained + found.metrics["easy_prompts"] == len(batch.groups)
        skipped += found.metrics["easy_prompts"]
    assert skipped > 0 < trained


def test_rows_share_nodes_unless_a_node_is_a_whole_response():
    for node_tokens, some in ((2, True), (8, False)):
        found = walked(search_tree(node_tokens=node_tokens, width=3, most_expansions=30))
        assert (sum(one.metrics["shared_nodes"] for one in found) > 0) == some


def test_a_search_gives_paths_with_the_values_of_their_nodes():
    draw = search_tree(node_tokens=2, width=3, most_expansions=30)
    for found in walked(draw):
        rollouts, outcome = found.batch.rollouts, found.batch.rollouts.outcome
        last = rollouts.records["process_reward"][np.arange(len(outcome)), rollouts.length - 1]
        # A leaf was backed up once: its value is its reward.
        assert_allclose(last, np.where(outcome > 0.5, 1, -1))
        assert found.metrics["solved_rows"] == outcome.sum()
        assert not np.any(rollouts.records["process_reward"][~rollouts.mask])
        assert all(len(rows) <= 4 for rows in found.batch.groups)
    assert {0.0, 1.0} <= set(outcome.tolist())


def test_a_search_that_may_not_reach_the_end_is_refused():
    chain = experience(draw=search_tree(node_tokens=2, most_expansions=3))
    with pytest.raises(ValueError, match=r"most_expansions must be at least 4.*got 3"):
        chain.init(numpy_actor.setting(chain))
