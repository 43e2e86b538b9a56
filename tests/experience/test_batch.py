"""Batches: rows keep their parents when they are numbered anew; grades become arrays in one way."""

import ast
from pathlib import Path

import numpy as np

import rlvr_jax
from rlvr_jax.experience import concatenate, experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.tasks import Grade


def family():
    """Eight rows of two groups; row 3 comes from row 1, row 6 from row 4."""
    chain = experience()
    own = numpy_actor.setting(chain, prompts=2)
    ((collected, _, _),) = numpy_actor.walk(chain, steps=1, own=own)
    parent = np.array([-1, -1, -1, 1, -1, -1, 4, -1], np.int32)
    return collected.batch.with_rollouts(parent=parent)


def test_parents_keep_their_rows_when_rows_are_taken():
    taken = family().take([7, 4, 6, 1, 3]).renumbered()
    np.testing.assert_array_equal(taken.rollouts.parent, [-1, -1, 1, -1, 3])


def test_a_row_whose_parent_is_gone_has_none():
    np.testing.assert_array_equal(family().take([0, 3]).renumbered().rollouts.parent, [-1, -1])


def test_parents_keep_their_rows_when_batches_are_joined():
    both = concatenate([family().take([1, 3]), family()])
    np.testing.assert_array_equal(both.rollouts.parent, [-1, 0, -1, -1, -1, 3, -1, -1, 6, -1])


def test_ungraded_rows_have_outcome_and_reward_0_and_are_not_valid():
    grades = [Grade(0.5, 2.0), Grade(None), *[Grade(1.0)] * 6]
    graded = family().graded(grades)
    np.testing.assert_array_equal(graded.rollouts.outcome, [0.5, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(graded.rollouts.reward, [2, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(graded.rollouts.valid, [True, False, *[True] * 6])
    shaped = graded.rewarded([np.nan, 7, *range(6)])
    np.testing.assert_array_equal(shaped.rollouts.reward, [0, 0, *range(6)])
    np.testing.assert_array_equal(shaped.rollouts.valid, [False, False, *[True] * 6])
    # Another reward makes a graded row valid again.
    np.testing.assert_array_equal(shaped.rewarded(np.ones(8)).rollouts.valid, graded.rollouts.valid)
    assert shaped.grades == grades and shaped.rollouts.reward.dtype == np.float32


def test_only_a_batch_sets_its_outcomes_and_rewards():
    package = Path(rlvr_jax.__file__).parent
    set_by_hand = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in package.rglob("*.py")
        if path != package / "experience" / "batch.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "with_rollouts"
        if {"outcome", "reward"} & {keyword.arg for keyword in node.keywords}
    ]
    assert set_by_hand == []
