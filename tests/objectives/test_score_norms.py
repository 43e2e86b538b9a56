"""Scores of rollouts against automatic differentiation, and the ratio of signal to noise."""

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.methods.credit.oblr_po import (
    last_layer_score,
    score_weighted_mean,
    signal_to_noise,
    snr_learning_rate,
)

RANDOM = np.random.default_rng(0)
ATOL = 1e-13  # float64, sums of some hundred terms of order one


def test_the_score_of_the_last_matrix_is_its_gradient_over_the_tokens_that_count():
    matrix, hidden = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(4, 3))
    tokens, mask = jnp.asarray([0, 4, 2, 2]), np.array([1, 0, 1, 1], bool)

    def logp(weights):
        every = jax.nn.log_softmax(jnp.asarray(hidden) @ weights.T)
        return jnp.sum(jnp.where(mask, every[jnp.arange(4), tokens], 0))

    poisoned = jnp.asarray(np.where(mask[:, None], hidden @ matrix.T, np.nan))
    found = last_layer_score(poisoned, jnp.asarray(hidden), tokens, jnp.asarray(mask))
    np.testing.assert_allclose(found, jax.grad(logp)(jnp.asarray(matrix)), atol=ATOL)


def test_signal_to_noise_is_that_of_the_samples():
    gradients = RANDOM.normal(size=(6, 4)) + 1.0
    mean = gradients.mean(axis=0)
    wanted = (mean @ mean) / (gradients.var(axis=0, ddof=1).sum() / 6)
    found = signal_to_noise(mean @ mean, (gradients**2).sum(), 6, 0.0)
    np.testing.assert_allclose(found, wanted, rtol=ATOL)
    assert snr_learning_rate(signal_to_noise(jnp.zeros(()), jnp.zeros(()), 6)) == 0


def test_equal_rewards_are_their_own_baseline():
    reward, norm = jnp.full(5, 0.1), jnp.asarray(RANDOM.uniform(1, 9, 5))
    np.testing.assert_array_equal(score_weighted_mean(reward, norm, np.zeros(5, int)), reward)
    # Norms that all round to 0: of a policy that is sure of everything.
    rounded = score_weighted_mean(reward, jnp.zeros(5), np.zeros(5, int))
    np.testing.assert_array_equal(rounded, reward)
