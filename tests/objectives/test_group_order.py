"""Ranks, numbers and quantiles of groups against plain numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.objectives.statistics.group_order import group_index, group_quantile, group_rank

GROUP = np.array([9, -3, 9, 9, 40, -3, 9])
VALUES = np.array([0.5, 2.0, 0.5, -1.0, 3.0, 1.0, 0.25])
ROLLOUT_ID = np.array([5, 1, 4, 2, 0, 3, 6])


def test_groups_are_numbered_by_their_ids():
    np.testing.assert_array_equal(group_index(GROUP), [1, 0, 1, 1, 2, 0, 1])


def test_ranks_ascend_and_ties_go_to_the_smaller_rollout_id():
    found = group_rank(jnp.asarray(VALUES), GROUP, ROLLOUT_ID)
    np.testing.assert_array_equal(found, [3, 1, 2, 0, 0, 0, 1])


@pytest.mark.thorough
def test_quantiles_are_those_of_numpy_over_the_rows_that_count():
    where = np.array([1, 1, 0, 1, 0, 1, 1], bool)
    for fraction in (0.0, 0.3, 0.5, 1.0):
        found = np.asarray(group_quantile(jnp.asarray(VALUES), GROUP, fraction, where))
        for one in (9, -3):
            own = one == GROUP
            wanted = np.quantile(VALUES[own & where], fraction)
            np.testing.assert_allclose(found[own], wanted, rtol=1e-14)
        assert found[4] == 0  # a group without a row that counts
