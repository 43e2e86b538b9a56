"""RLFR: penalizes tokens whose hidden states deviate from the flow of correct responses."""

import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.methods.credit.rlfr import deviation_penalty
from rlvr_jax.types import Rollouts


@pytest.mark.thorough
def test_scores_are_scaled_and_chosen_within_their_response():
    scores = array([[1.0, 3.0, 2.0, 2.0, 9.0], [5.0, 5.0, 9, 9, 9]], np.float64)
    mask = array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], bool)
    batch = Rollouts.of_responses(
        np.zeros(mask.shape, int), mask, np.ones(2), [0, 1], process_reward=scores
    )
    for most, penalties in ((2, [0, 1, 0.5, 0, 0]), (3, [0, 1, 0.5, 0.5, 0])):
        found = deviation_penalty(0.2, most).of(batch, batch.mask)
        np.testing.assert_array_equal(-found, [penalties, [0] * 5])
