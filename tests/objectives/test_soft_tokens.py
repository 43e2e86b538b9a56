"""Mixtures of tokens: how they are drawn and what their density is."""

import jax
import jax.numpy as jnp
import numpy as np
from golden_vectors import array

from rlvr_jax.objectives.surrogates.soft_tokens import (
    GumbelNoise,
    mixture_weights,
    nucleus_candidates,
    perturbed,
    soft_token_logp,
)

BOUNDS = GumbelNoise()


def test_candidates_stay_while_the_mass_before_them_is_small():
    logits = array(np.log([0.4, 0.1, 0.3, 0.2]), float)
    ids, p = nucleus_candidates(logits, 3, 0.7)  # 4/9, 3/9 and 2/9 of the three largest
    np.testing.assert_array_equal(ids, [0, 2, 3])
    np.testing.assert_allclose(p, [4 / 7, 3 / 7, 0], rtol=1e-14)


def test_a_tiny_nucleus_keeps_the_most_probable_token():
    ids, p = nucleus_candidates(array([0.0, 1.0], float), 2, 1e-9)
    assert ids[0] == 1
    np.testing.assert_array_equal(p, [1, 0])
    weights = mixture_weights(perturbed(p, array([0.0, 0.0], float), BOUNDS), 0.1)
    np.testing.assert_allclose(weights, [1, 0], atol=1e-50)


def test_the_density_is_that_of_the_noise_and_clamped_noise_has_no_gradient():
    candidate = array(np.log([0.5, 0.3, 0.2]), float)
    noise = np.array([0.4, -2.5, 9.0])  # one inside, one below and one above the bounds
    recorded = jnp.log(jnp.exp(candidate) + BOUNDS.epsilon) + noise
    clamped = np.clip(noise, BOUNDS.low, BOUNDS.high)
    value = soft_token_logp(candidate, recorded, BOUNDS)
    np.testing.assert_allclose(value, np.mean(-clamped - np.exp(-clamped)), rtol=1e-12)
    far = recorded + array([50.0, 50.0, 50.0], float)
    assert not np.asarray(jax.grad(soft_token_logp)(candidate, far, BOUNDS)).any()


def test_candidates_below_the_floor_do_not_count():
    candidate = array(np.log([0.97, 0.02, 0.01]), float)  # log-probs of -0.03, -3.9 and -4.6
    recorded = candidate + 0.5
    value = soft_token_logp(candidate, recorded, BOUNDS)
    np.testing.assert_allclose(value, -0.5 - np.exp(-0.5), rtol=1e-5)  # epsilon shifts the noise
