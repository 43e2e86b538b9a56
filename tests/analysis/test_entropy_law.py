"""The entropy law against known curves and finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.analysis.entropy.entropy_law import entropy_change, fit_entropy_law, token_covariance

RTOL = 1e-9  # float64; the slope is a quotient of small differences


def _log_softmax(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def test_a_curve_made_by_the_law_is_found_again():
    entropy = np.linspace(0.3, 0.05, 40)
    law = fit_entropy_law(entropy, 2.6 - 1.7 * np.exp(entropy))
    assert_allclose([law.a, law.b, law.r_squared, law.ceiling], [1.7, 2.6, 1.0, 0.9], rtol=RTOL)
    assert law.num_points == 40


def test_the_entropy_change_is_the_derivative_along_a_natural_step():
    rng = np.random.default_rng(0)
    logits, advantage = rng.normal(size=(5, 11)), rng.normal(size=(5, 11))

    def entropy(rate):
        log_probs = _log_softmax(logits + rate * advantage)
        return -np.sum(np.exp(log_probs) * log_probs, -1)

    numeric = (entropy(1e-5) - entropy(-1e-5)) / 2e-5
    # central difference: third derivative · rate² and rounding / rate, both near 1e-10
    assert_allclose(entropy_change(_log_softmax(logits), advantage), numeric, rtol=1e-7, atol=1e-9)


def test_tokens_off_the_mask_do_not_move_the_covariance():
    logp = np.array([[-1.0, -2.0, 9e9]])
    mask = np.array([[True, True, False]])
    assert_allclose(token_covariance(logp, [[1.0, -1.0, 7e7]], mask), [[0.5, 0.5, 0.0]])
    assert not token_covariance(logp, [[1.0]], np.zeros((1, 3), bool)).any()
    with pytest.raises(ValueError, match=r"advantage must be \[1, 3\] as logp, or \[1, 1\], got"):
        token_covariance(logp, [1.0], mask)


def test_a_token_that_cannot_be_drawn_has_no_part_in_the_change():
    log_probs = np.log([0.25, 0.75])
    wanted = entropy_change(log_probs, [1.0, -1.0])
    assert_allclose(entropy_change([*log_probs, -np.inf], [1.0, -1.0, 5.0]), wanted)


@pytest.mark.parametrize("level", [0.0, 0.1, 0.3])
def test_a_constant_entropy_is_refused(level):
    with pytest.raises(ValueError, match="fit_entropy_law: entropy must vary"):
        fit_entropy_law(np.full(7, level), np.arange(7.0))


@pytest.mark.parametrize("level", [0.0, 0.1, 0.5])
def test_a_constant_reward_has_no_r_squared(level):
    law = fit_entropy_law(np.linspace(0.1, 0.7, 7), np.full(7, level))
    assert np.isnan(law.r_squared) and abs(law.a) < 1e-15  # the mean of 7 numbers is rounded


@pytest.mark.parametrize(
    "entropy, reward", [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([[1.0]], [[1.0]])]
)
def test_wrong_shapes_are_refused(entropy, reward):
    with pytest.raises(ValueError, match=r"must have one shape \[N\] with N ≥ 2, got"):
        fit_entropy_law(entropy, reward)


def test_a_nan_is_refused_by_name():
    with pytest.raises(ValueError, match="fit_entropy_law: reward must be finite"):
        fit_entropy_law([1.0, 2.0], [1.0, np.nan])
