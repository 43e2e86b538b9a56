"""The mass balance: its terms add up, sampled tokens help, and with everything sampled all do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.updates.mass_balance import mass_balance

RTOL = 1e-10  # float64, sums of some hundred terms of both signs
STEP = 1e-6  # of the rate, for a difference of first order
FIRST_ORDER = 1e-4


def states(number=200, vocabulary=30):
    random = np.random.default_rng(0)
    p = random.dirichlet(np.full(vocabulary, 0.3), number)
    correct = random.random((number, vocabulary)) < 0.3
    sampled = random.random((number, vocabulary)) < 0.4
    return p, sampled, correct, random.integers(1, 600, number)


def test_the_terms_add_up_to_the_change_of_the_mass():
    found = mass_balance(*states())
    assert_allclose(found.change, found.direct, rtol=RTOL, atol=1e-18)


def test_the_change_is_that_of_the_softmax_to_first_order():
    p, sampled, correct, samples = states()
    found = mass_balance(p, sampled, correct, samples, learning_rate=STEP)
    after = p * np.exp(found.step)
    after /= after.sum(axis=-1, keepdims=True)
    moved = np.sum(np.where(correct, after - p, 0), axis=-1)
    assert_allclose(moved, found.change, rtol=FIRST_ORDER, atol=1e-15)


def test_what_is_sampled_adds_to_the_mass_of_right_tokens():
    found = mass_balance(*states())
    assert found.sampled_correct.min() >= 0 and found.sampled_incorrect.min() >= 0
    assert found.unsampled.min() < 0 < found.unsampled.max()


def test_with_everything_sampled_the_mass_grows():
    p, sampled, correct, samples = states()
    found = mass_balance(p, np.ones_like(sampled), correct, samples)
    assert np.all(found.unsampled == 0)
    assert found.change.min() >= 0


def test_what_is_no_distribution_is_refused():
    with pytest.raises(ValueError, match="mass_balance: probability must sum to 1"):
        mass_balance(np.full((1, 3), 0.5), np.ones((1, 3), bool), np.ones(3, bool), np.ones(1))
    with pytest.raises(ValueError, match="mass_balance: samples must be at least 1, got 0"):
        mass_balance(np.full((1, 2), 0.5), np.ones((1, 2), bool), np.ones(2, bool), np.zeros(1))
