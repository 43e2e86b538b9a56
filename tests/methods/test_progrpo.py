"""ProGRPO: rewards less the responses that the policy found likely."""

import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.exploration.progrpo import low_probability_tokens


@pytest.mark.thorough
def test_low_probability_tokens_are_at_least_one_and_the_earlier_of_equals():
    logp = array([[-1, -3, -3, -2, 0], [-1, -1, -1, -1, -1], [0, 0, 0, 0, 0]], float)
    mask = array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)
    chosen = low_probability_tokens(logp, mask, 0.2)
    np.testing.assert_array_equal(chosen, [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0] * 5])
    np.testing.assert_array_equal(low_probability_tokens(logp, mask, 0.4).sum(axis=1), [2, 2, 0])
