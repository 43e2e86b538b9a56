"""Corrections of noisy rewards: their expectation, and which rates are refused."""

import numpy as np
import pytest
from golden_vectors import rollouts

from rlvr_jax.methods.credit.noisy_reward_correction import forward_corrected

ATOL = 1e-15  # float64, three operations on numbers of order one


def test_correct_answers_have_mean_zero_and_incorrect_ones_a_negative_mean():
    false_alarm, miss = 0.1, 0.2
    accepted = np.array([1.0, 0.0] * 6)
    forward = forward_corrected(miss)(rollouts("b").replace(outcome=accepted))
    chances = {0: (1 - miss, miss), -0.7: (false_alarm, 1 - false_alarm)}
    for wanted, chance in chances.items():
        np.testing.assert_allclose(np.array(chance) @ forward[:2], wanted, atol=ATOL)


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_rates_that_leave_no_signal_are_refused(rate):
    with pytest.raises(ValueError, match=r"forward_corrected: miss_rate must be in \[0, 1\)"):
        forward_corrected(rate)
