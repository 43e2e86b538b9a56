"""Corrections of noisy rewards: what they are in expectation, and which rates are refused."""

import numpy as np
import pytest
from golden_vectors import rollouts

from rlvr_jax.methods.credit.noisy_reward_correction import (
    advantage_audit,
    backward_corrected,
    forward_corrected,
    updated_miss_rate,
)
from rlvr_jax.types import replace

ATOL = 1e-15  # float64, three operations on numbers of order one


def test_corrections_undo_the_noise_in_expectation():
    false_alarm, miss = 0.1, 0.2
    called = np.array([1.0, 0.0] * 6)  # called right, called wrong
    batch = replace(rollouts("b"), outcome=called)
    backward = backward_corrected(false_alarm, miss)(batch)
    forward = forward_corrected(miss)(batch)
    chance = {"right": (1 - miss, miss), "wrong": (false_alarm, 1 - false_alarm)}
    for truth, wanted_backward, wanted_forward in (("right", 1, 0), ("wrong", 0, -0.7)):
        weights = np.array(chance[truth])
        np.testing.assert_allclose(weights @ backward[:2], wanted_backward, atol=ATOL)
        np.testing.assert_allclose(weights @ forward[:2], wanted_forward, atol=ATOL)


def test_a_rate_without_any_evidence_is_one_half():
    np.testing.assert_allclose(updated_miss_rate(0.2, 0.0, 0.0, decay=0.0), 0.5, atol=ATOL)


def test_the_audit_of_nothing_is_0():
    batch = rollouts("b")
    nothing = np.zeros(batch.mask.shape)
    assert advantage_audit(nothing, nothing, batch.mask) == (0, 0, 0)


@pytest.mark.parametrize("rates", [(0.6, 0.4), (-0.1, 0.2)])
def test_rates_that_leave_no_signal_are_refused(rates):
    with pytest.raises(ValueError, match="at least 0 and below 1 together"):
        backward_corrected(*rates)
