"""Rows of another origin: their records, and their places in a batch."""

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.laws import numpy_actor
from rlvr_jax.experience.stages.donors.traces import TEACHER, off_policy_rows, own_rows, with_rows


def test_rows_without_records_of_origin_are_the_policys_and_others_keep_theirs():
    ((found, _, _),) = numpy_actor.walk(experience(), steps=1)
    assert not found.batch.rollouts.records.keys() & {"off_policy", "origin"}
    for rows, off_policy, origin in (
        (found.batch, False, 0),
        (off_policy_rows(found.batch), True, TEACHER),
    ):
        records = own_rows(rows).rollouts.records
        np.testing.assert_array_equal(records["off_policy"], np.full(len(rows), off_policy))
        np.testing.assert_array_equal(records["origin"], np.full(rows.rollouts.mask.shape, origin))


def test_rows_are_replaced_by_chosen_rows_of_another_batch():
    batch, other = (found.batch for found, _, _ in numpy_actor.walk(experience(), steps=2))
    found = with_rows(batch, np.array([0, 2]), other, np.array([3, 1])).rollouts
    wanted = batch.rollouts.tokens.copy()
    wanted[[0, 2]] = other.rollouts.tokens[[3, 1]]
    np.testing.assert_array_equal(found.tokens, wanted)
    np.testing.assert_array_equal(found.group, batch.rollouts.group)
