"""Batches: rows keep their parents when they are numbered anew."""

import numpy as np

from rlvr_jax.experience import concatenate, experience
from rlvr_jax.experience.laws import numpy_actor


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
