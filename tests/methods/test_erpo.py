"""ERPO's virtual wrong answer: the worked example, and what it leaves alone."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import row_advantages

from rlvr_jax.methods import recipe

ROUNDED = 1e-6  # the example has six digits


def advantages(outcomes, **hyperparameters):
    batch = golden.rollouts("b")  # groups of four
    rows = jnp.asarray(np.resize(outcomes, len(batch.group)), batch.reward.dtype)
    batch = batch.replace(outcome=rows, reward=rows)
    return np.asarray(row_advantages(recipe("erpo", **hyperparameters), batch))[: len(outcomes)]


def test_an_all_right_group_is_pushed_up_a_little_if_it_is_asked_for():
    right = [1.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(advantages(right, reactivate=True), 0.447213, atol=ROUNDED)
    np.testing.assert_array_equal(advantages(right), 0)


def test_an_all_wrong_group_teaches_nothing_either_way():
    for reactivate in (False, True):
        np.testing.assert_array_equal(advantages([0.0] * 4, reactivate=reactivate), 0)
