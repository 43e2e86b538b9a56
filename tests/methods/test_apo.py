"""APO: weakens the KL for rare successes and penalizes long incorrect responses more."""

import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods.credit.apo import long_error_factor


def test_without_a_right_answer_no_length_is_too_long():
    length, group = jnp.asarray([2, 9, 30]), jnp.zeros(3, jnp.int32)
    assert (np.asarray(long_error_factor(jnp.zeros(3), group, length, 1.1)) == 1).all()
    found = long_error_factor(jnp.asarray([1.2, 0.9, 0.0]), group, length, 1.1)
    np.testing.assert_allclose(found, [1, 2 - 1.1**-7, 2 - 1.1**-28], rtol=1e-8)
