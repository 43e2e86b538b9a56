"""A tiny policy in float64 and the pool's primitives compiled for it, shared by their tests."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.policy import Model, named_config
from rlvr_jax.rollout import Sampling, decode, empty, fork, prefill, truncate

VOCABULARY, ROWS, SLOTS, WIDTH = 13, 4, 16, 4
STOP = 0
STEPS = 6
PROMPTS = np.random.default_rng(0).integers(1, VOCABULARY, (ROWS, WIDTH)).astype(np.int32)
PROMPT_LENGTH = np.array([4, 2, 3, 1], np.int32)
PLAIN, GREEDY = Sampling(), Sampling(temperature=1e-4)

MODEL = Model(named_config("tiny", VOCABULARY, compute_dtype="float64"))

# float64 on both sides, some hundred roundings of 1e-16 on numbers of order ten
EXACT = dict(rtol=1e-10, atol=1e-11)
RECORD = ("logp", "behaviour_logp", "entropy")


def _parameters():
    """Random weights of a policy that is sure of some tokens and not of others."""
    random = np.random.default_rng(1)
    shapes = jax.eval_shape(MODEL.init, jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(0, 0.3, leaf.shape)), shapes)


PARAMS = _parameters()

# Compiled once for each shape, for all tests; `stop` is a tuple of ids.
run = jax.jit(
    partial(decode, MODEL),
    static_argnames=("steps", "sampling", "stop_tokens", "record_top"),
)
give = jax.jit(partial(prefill, MODEL))
copy, cut_back = jax.jit(fork), jax.jit(truncate)


def draw(pool, steps=STEPS, sampling=PLAIN, stop_tokens=(), weight_version=0):
    return run(PARAMS, pool, steps, sampling, stop_tokens, weight_version=weight_version)


def keys(rows=ROWS, seed=5):
    return jax.random.split(jax.random.key(seed), rows)


def started(tokens=PROMPTS, count=PROMPT_LENGTH):
    pool = replace(empty(MODEL, len(tokens), SLOTS), key=keys(len(tokens)))
    return give(PARAMS, pool, tokens, count)


def assert_same_rows(pool, expected, names=RECORD, tolerance=EXACT):
    """Same tokens, masks and states; the same record up to rounding. Caches may differ."""
    written = np.arange(pool.tokens.shape[1]) < np.asarray(expected.length)[:, None]
    for name in ("length", "prompt_length", "status", "mask", "version"):
        assert_array_equal(getattr(pool, name), getattr(expected, name), err_msg=name)
    assert_array_equal(np.where(written, pool.tokens, -1), np.where(written, expected.tokens, -1))
    for name in names:
        assert_allclose(getattr(pool, name), getattr(expected, name), err_msg=name, **tolerance)


def logits_at(tokens, position):
    """Logits of what follows the token at `position`, by a full pass."""
    return to_logits(PARAMS, jnp.asarray(tokens)[None])[0, position]


to_logits = jax.jit(MODEL.logits)


def sequences(rollouts):
    """Prompt and response of each row without a gap, S = P + T; what lies behind is arbitrary."""
    width, budget = rollouts.prompt_tokens.shape[1], rollouts.tokens.shape[1]
    index = jnp.arange(width + budget, dtype=jnp.int32)[None]
    start = rollouts.prompt_length[:, None].astype(jnp.int32)
    padded = jnp.pad(rollouts.prompt_tokens, ((0, 0), (0, budget)))
    response = jnp.take_along_axis(rollouts.tokens, jnp.clip(index - start, 0, budget - 1), axis=1)
    return jnp.where(index < start, padded, response)
