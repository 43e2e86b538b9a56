"""Logits processors against their definitions, token by token."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.rollout import (
    Processor,
    Sampling,
    TokenContext,
    compose,
    keep_min_p,
    keep_top_k,
    keep_top_p,
)

ROWS, VOCABULARY = 5, 12
CONTEXT = TokenContext(jnp.zeros(ROWS, jnp.int32), jnp.zeros((), jnp.int32))


def random_logits(seed=0):
    return np.random.default_rng(seed).normal(0, 2, (ROWS, VOCABULARY))


def probabilities(logits):
    mass = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return mass / mass.sum(axis=-1, keepdims=True)


def kept(processor, logits):
    """Which tokens stay; those that stay must keep their logits."""
    out, _ = processor.apply(jnp.asarray(logits), processor.init(len(logits)), CONTEXT)
    keep = np.isfinite(out)
    assert_array_equal(out, np.where(keep, logits, -np.inf))
    return keep


@pytest.mark.parametrize("k", [1, 3, VOCABULARY, VOCABULARY + 5])
def test_top_k_keeps_the_k_most_probable(k):
    logits = random_logits()
    rank = np.argsort(np.argsort(-logits, axis=-1), axis=-1)
    assert_array_equal(kept(keep_top_k(k), logits), rank < k)


def test_tokens_as_probable_as_the_k_th_stay():
    assert_array_equal(kept(keep_top_k(2), np.array([[3.0, 1.0, 1.0, 0.0]])), [[1, 1, 1, 0]])


@pytest.mark.parametrize("p", [1e-6, 0.3, 0.8, 0.999])
def test_top_p_keeps_the_smallest_set_that_reaches_p(p):
    logits = random_logits()
    keep = kept(keep_top_p(p), logits)
    for row, share in zip(keep, probabilities(logits), strict=True):
        order = np.argsort(-share)
        size = 1 + int(np.argmax(np.cumsum(share[order]) >= p))
        assert_array_equal(np.sort(np.flatnonzero(row)), np.sort(order[:size]))


def test_tokens_as_probable_as_the_last_of_the_set_stay():
    assert_array_equal(kept(keep_top_p(0.5), np.array([[2.0, 1.0, 1.0, 0.0]])), [[1, 0, 0, 0]])
    assert_array_equal(kept(keep_top_p(0.6), np.array([[2.0, 1.0, 1.0, 0.0]])), [[1, 1, 1, 0]])


@pytest.mark.parametrize("p", [0.01, 0.2, 0.9])
def test_min_p_keeps_what_is_p_times_as_probable_as_the_best(p):
    logits = random_logits()
    share = probabilities(logits)
    expected = share >= p * share.max(axis=-1, keepdims=True)
    assert_array_equal(kept(keep_min_p(p), logits), expected)


@pytest.mark.parametrize("cut", [keep_top_k(6), keep_top_p(0.9), keep_min_p(0.05)])
def test_a_token_that_was_ruled_out_stays_out(cut):
    logits = random_logits()
    logits[:, ::2] = -np.inf
    assert not np.any(kept(cut, logits)[:, ::2])


def test_top_p_counts_only_what_earlier_cuts_left():
    logits = np.log(np.array([[0.4, 0.3, 0.2, 0.1]]))
    both = compose(keep_top_k(2), keep_top_p(0.55))
    # of the two that are left, the first has 4/7 of the mass
    assert_array_equal(kept(both, logits), [[1, 0, 0, 0]])


def counting(step):
    """Adds the carry to all logits and moves it by `step`."""

    def apply(logits, carry, context):
        del context
        return logits + carry[:, None], carry + step

    return Processor(lambda rows: jnp.zeros(rows), apply)


def test_composed_processors_run_in_order_each_with_its_own_carry():
    doubled = Processor(lambda rows: None, lambda logits, carry, context: (2 * logits, carry))
    chain = compose(counting(1.0), doubled, counting(10.0))
    logits, carry = jnp.asarray(random_logits()), chain.init(ROWS)
    for step in range(3):
        out, carry = chain.apply(logits, carry, CONTEXT)
        assert_allclose(out, 2 * (logits + step) + 10 * step, rtol=1e-15, atol=1e-14)
    assert_array_equal(carry[0], np.full(ROWS, 3.0))
    assert_array_equal(carry[2], np.full(ROWS, 30.0))


def test_nothing_switched_on_is_no_processor():
    assert Sampling(temperature=0.5).chain() is None


def test_the_own_processor_runs_before_the_cuts():
    flipped = Processor(lambda rows: None, lambda logits, carry, context: (-logits, carry))
    logits = random_logits()
    chain = Sampling(top_k=1, top_p=0.9, min_p=0.1, processor=flipped).chain()
    out, _ = chain.apply(jnp.asarray(logits), chain.init(ROWS), CONTEXT)
    assert_array_equal(np.isfinite(out), logits == logits.min(axis=-1, keepdims=True))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("cut", [keep_top_k(3), keep_top_p(0.9), keep_min_p(0.1)])
def test_a_cut_keeps_the_dtype(cut, dtype):
    logits = jnp.asarray(random_logits(), dtype)
    out = jax.eval_shape(lambda z: cut.apply(z, None, CONTEXT)[0], logits)
    assert (out.shape, out.dtype) == (logits.shape, logits.dtype)


@pytest.mark.parametrize(
    "setting, message",
    [
        ({"temperature": 1e-8}, "temperature must be at least 1e-06, which is greedy, got 1e-08"),
        ({"temperature": 0.0}, "temperature must be at least 1e-06, which is greedy, got 0.0"),
        ({"temperature": -1.0}, "temperature must be at least 1e-06, which is greedy, got -1.0"),
        ({"top_k": -1}, r"top_k must be 0 \(off\) or a positive integer, got -1"),
        ({"top_k": 2.5}, r"top_k must be 0 \(off\) or a positive integer, got 2.5"),
        ({"top_p": 0.0}, r"top_p must be in \(0, 1\], got 0.0"),
        ({"top_p": 1.1}, r"top_p must be in \(0, 1\], got 1.1"),
        ({"min_p": -0.1}, r"min_p must be in \[0, 1\), got -0.1"),
        ({"min_p": 1.0}, r"min_p must be in \[0, 1\), got 1.0"),
        (
            {"temperature": float("nan")},
            "temperature must be at least 1e-06, which is greedy, got nan",
        ),
    ],
)
def test_a_setting_without_a_meaning_is_refused(setting, message):
    with pytest.raises(ValueError, match=f"Sampling: {message}"):
        Sampling(**setting)
