"""Several rewards: those that do not apply, and weights that do not fit."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.methods.baselines.gdpo import component_advantages, weighted_sum

GROUP = np.array([0, 0, 0, 1, 1, 1])


@pytest.mark.thorough
def test_a_reward_that_does_not_apply_is_left_out_of_its_group():
    values = np.array([1.0, 0.0, np.nan, np.nan, np.nan, 0.4])
    found = component_advantages(jnp.asarray(values)[:, None], GROUP, 1e-4)[:, 0]
    std = np.std([1.0, 0.0], ddof=1) + 1e-4
    np.testing.assert_allclose(found, [0.5 / std, -0.5 / std, 0, 0, 0, 0], atol=1e-14)


@pytest.mark.thorough
def test_a_constant_reward_adds_nothing():
    values = jnp.stack([jnp.full(6, 0.1), jnp.arange(6.0)], axis=1)
    found = np.asarray(component_advantages(values, GROUP, 1e-4))
    assert not found[:, 0].any() and found[:, 1].any()


def test_weights_are_one_per_reward():
    np.testing.assert_array_equal(weighted_sum(jnp.ones((2, 3))), [3.0, 3.0])
    with pytest.raises(ValueError, match="weights must be 3 numbers, one per reward, got 2"):
        weighted_sum(jnp.ones((2, 3)), (1.0, 2.0))
