"""ERPO's virtual wrong answer: the worked example, and what it leaves alone."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
import pytest
from adapters.common import row_advantages

from rlvr_jax.methods import recipe
from rlvr_jax.methods.entropy.erpo import heat, heat_solved, streaks

ROUNDED = 1e-6  # the example has six digits


FLOAT32 = 1e-6  # rates of a few visits, one rounding each


def advantages(outcomes, **hyperparameters):
    batch = golden.rollouts("b")  # groups of four
    rows = jnp.asarray(np.resize(outcomes, len(batch.group)), batch.reward.dtype)
    batch = batch.replace(outcome=rows, reward=rows)
    return np.asarray(row_advantages(recipe("erpo", **hyperparameters), batch))[: len(outcomes)]


def test_an_all_right_group_is_pushed_up_a_little_if_it_is_asked_for():
    correct = [1.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(advantages(correct, reactivate=True), 0.447213, atol=ROUNDED)
    np.testing.assert_array_equal(advantages(correct), 0)


@pytest.mark.thorough
def test_an_all_wrong_group_teaches_nothing_either_way():
    for reactivate in (False, True):
        np.testing.assert_array_equal(advantages([0.0] * 4, reactivate=reactivate), 0)


def test_a_prompt_is_asked_hotter_with_each_all_right_visit():
    streak, asked = np.zeros(1, np.int32), []
    for correct in (True, True, False, True, False, True):
        asked.append(float(heat(streak[0], 1.0, 0.05, 1.3)))
        streak = streaks(streak, [0], [correct])
    np.testing.assert_allclose(asked, [1.0, 1.05, 1.1, 1.0, 1.05, 1.0], rtol=FLOAT32)
    for _ in range(6):
        streak = streaks(streak, [0], [True])
    assert heat(streak[0], 1.0, 0.05, 1.3) == 1.3


def test_a_highest_temperature_below_the_base_is_refused():
    with pytest.raises(ValueError, match=r"heat_solved: highest must be at least 1, got 0.9"):
        heat_solved(1.0, 0.05, 0.9)
