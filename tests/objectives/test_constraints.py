"""Judged rewards, low-probability protection, penalized outcomes."""

import jax.numpy as jnp
import numpy as np
from golden_vectors import array

from rlvr_jax.experience import (
    first_of_largest,
)

GROUP = array([4, 4, 4, 1, 1], np.int32)


IDS = array([2, 1, 0, 4, 3], np.int32)


def test_groups_without_candidates_have_no_best_row():
    none = array(np.zeros(5), bool)
    assert not np.asarray(first_of_largest(jnp.ones(5), GROUP, IDS, none)).any()
