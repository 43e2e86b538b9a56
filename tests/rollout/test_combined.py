"""Logits of several models in lockstep."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax import policy
from rlvr_jax.rollout import (
    Delta,
    Sampling,
    combine_logits,
    decode,
    empty,
    fork,
    prefill,
    with_deltas,
)

FLOAT32 = 2e-5  # logits of four float32 models, of some units
ROWS, SLOTS, VOCABULARY = 4, 16, 11


def made(seed, **overrides):
    model = policy.Model(policy.named_config("tiny", VOCABULARY, max_positions=32, **overrides))
    return model, jax.jit(model.init)(jax.random.key(seed))


@pytest.fixture(scope="module")
def models():
    return made(0), made(1), made(2, num_layers=1)


def begun(models, weight=1.0, equal=False):
    (model, params), trained, base = models
    base = trained if equal else base
    tokens = jnp.array([[1, 2, 3], [4, 5, 0], [6, 0, 0], [7, 8, 9]], jnp.int32)
    count = jnp.array([3, 2, 1, 3], jnp.int32)
    pool = prefill(model, params, empty(model, ROWS, SLOTS), tokens, count)
    delta = Delta(trained[0], base[0], weight)
    return with_deltas(pool, [delta], [(trained[1], base[1])], tokens, count)


def sampled(models, steps=8, temperature=0.7, **options):
    pool, processor, constants = begun(models, **options)
    sampling = Sampling(temperature, processor=processor)
    return decode(*models[0], pool, steps, sampling, (0,), constants=constants)


def summed(models, pool, temperature):
    """Log-probs of all tokens at every place, by full passes."""
    logits = [jax.jit(model.logits)(params, pool.tokens) for model, params in models]
    return jax.nn.log_softmax(combine_logits(*logits) / temperature)


@pytest.mark.thorough
def test_tokens_are_drawn_from_the_sum(models):
    pool = sampled(models)
    logp = summed(models, pool, 0.7)[:, :-1]
    own = jnp.take_along_axis(logp, pool.tokens[:, 1:, None], axis=-1)[..., 0]
    mask = np.asarray(pool.mask[:, 1:])
    assert mask.sum() > 15
    assert_allclose(np.asarray(pool.behaviour_logp[:, 1:])[mask], own[mask], atol=FLOAT32)
    # The policy's log-probs are recorded beside.
    assert np.abs(pool.logp - pool.behaviour_logp)[np.asarray(pool.mask)].max() > 1e-3


@pytest.mark.thorough
def test_equal_small_models_give_the_policy_itself(models):
    (model, params), _, _ = models
    pool = sampled(models, equal=True)
    other, _, _ = begun(models)
    other = replace(other, carry=None)
    plain = decode(model, params, other, 8, Sampling(0.7), (0,))
    assert_array_equal(pool.tokens, plain.tokens)
    assert_allclose(pool.behaviour_logp, plain.behaviour_logp, atol=FLOAT32)


@pytest.mark.thorough
def test_a_greedy_fork_goes_on_as_a_full_pass_would(models):
    pool = sampled(models, steps=3, temperature=1e-6)
    cut = pool.prompt_length + 1
    forked = fork(pool, jnp.arange(ROWS), cut, pool.key)
    _, processor, constants = begun(models)
    sampling = Sampling(1e-6, processor=processor)
    whole = decode(*models[0], forked, 5, sampling, (0,), constants=constants)
    best = np.asarray(summed(models, whole, 1.0)).argmax(axis=-1)
    mask = np.asarray(whole.mask[:, 1:])
    assert_array_equal(np.asarray(whole.tokens[:, 1:])[mask], best[:, :-1][mask])


def test_vocabularies_are_cut_to_the_smallest():
    found = combine_logits(jnp.arange(4.0), jnp.ones(3), jnp.zeros(5), 2.0)
    assert_array_equal(found, [2, 3, 4])
