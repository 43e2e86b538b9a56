"""RepExp: a bonus for responses whose representation differs from the others of their group."""

import numpy as np
import pytest
from golden_vectors import array
from reward_rows import rollouts

from rlvr_jax.methods.exploration.rep_exploration import (
    leave_one_out_leverage,
    leverage,
    novelty_bonus,
)


@pytest.mark.parametrize("scale", [0.1, 10.0, 1000.0])
def test_leverage_in_float32_is_that_of_exact_arithmetic_whatever_the_scale(scale):
    features = np.random.default_rng(0).normal(size=(12, 64)) * scale
    group, ridge = np.repeat([3, 1], 6), 0.01
    wanted = np.zeros(12)
    for number in (1, 3):
        own = features[group == number]
        own = own - own.mean(axis=0)
        outer = ridge * np.eye(64) + own.T @ own
        wanted[group == number] = np.diagonal(own @ np.linalg.solve(outer, own.T))
    found = leverage(array(features, np.float32), array(group, np.int32), ridge)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)  # sums of 12 in float32
    np.testing.assert_allclose(
        leave_one_out_leverage(found), wanted / (1 - wanted), rtol=1e-4
    )  # 1 - l is a sixth


@pytest.mark.thorough
def test_embeddings_without_length_are_all_alike():
    batch = rollouts().replace(embedding=array(np.zeros((4, 0)), np.float64))
    for others in (False, True):
        np.testing.assert_array_equal(novelty_bonus(0.1, others=others)(batch), batch.outcome)
