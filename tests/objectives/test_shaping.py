"""Rewards made of several."""

import jax.numpy as jnp
import numpy as np
import pytest
from golden_vectors import array

from rlvr_jax.experience import weighted
from rlvr_jax.types import Rollouts


def rollouts(rewards):
    rows = len(rewards)
    return Rollouts.of_responses(
        tokens=array(np.zeros((rows, 2)), np.int32),
        mask=array(np.ones((rows, 2)), bool),
        reward=array(np.zeros(rows), np.float64),
        group=array(np.zeros(rows), np.int32),
        component_rewards=jnp.asarray(rewards),
    )


def test_rewards_are_summed_by_their_weights_and_what_does_not_apply_is_nothing():
    found = weighted([1.0, 0.5])(rollouts([[1.0, 1.0], [0.0, 1.0], [1.0, np.nan]]))
    np.testing.assert_array_equal(found, [1.5, 0.5, 1.0])


def test_another_number_of_rewards_is_refused():
    with pytest.raises(ValueError, match="weights must be 3 numbers, one per reward, got 2"):
        weighted([1.0, 0.5])(rollouts([[1.0, 0.0, 0.0]]))


@pytest.mark.parametrize(("weights", "message"), [([], "got none"), ([1.0, np.inf], "got inf")])
def test_weights_that_are_none_or_no_numbers_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        weighted(weights)
