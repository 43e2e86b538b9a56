"""SAPO: a sigmoid gate in place of the clip."""

import jax
import pytest
from golden_vectors import array

from rlvr_jax.methods.clipping.sapo import sigmoid_gate


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_gate_has_slope_one_on_policy_and_fades_on_both_sides(temperature):
    slope = jax.vmap(jax.grad(sigmoid_gate), (0, None))(array([0.0, 1.0, 2.0], float), temperature)
    assert slope[1] == 1
    assert slope[0] < 1 and slope[2] < 1
