"""Rows of another origin: their records, and their places in a batch."""

from dataclasses import replace

import numpy as np
import pytest

from rlvr_jax.experience import add_traces, experience
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


@pytest.mark.parametrize(("room", "traces"), [(0, 4.0), (-1, 0.0)])
def test_a_solution_of_the_whole_budget_is_added_and_a_longer_one_is_counted(room, traces):
    chain, actor = experience(stages=[add_traces()]), numpy_actor.NumpyActor()
    own = numpy_actor.setting(chain)
    solutions = [actor.encode("".join(prompt.solution)) for prompt in own.task.train]
    (length,) = {len(ids) + 1 for ids in solutions}  # and the stop token
    own = replace(own, response_tokens=length + room)
    found = numpy_actor.walk(chain, actor, steps=1, own=own)[0][0].metrics
    assert (found["traces"], found["traces_too_long"]) == (traces, 4 - traces)
