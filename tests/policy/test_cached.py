"""Attention to the written part of a cache: what reading all of it gives, and what is not read."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import compilations
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.policy import Model, attention, cached, named_config

SLOTS, ROWS = 23, 3
# float64 sums of at most 23 terms in another order, against entries of order one
TOLERANCE = 1e-12


def config_of(window=None, dtype="float64"):
    sliding = {"sliding_window": window, "sliding_layers": (0,), "local_rope_theta": 10.0}
    return named_config("tiny", 16, compute_dtype=dtype, **(sliding if window else {}))


def arrays(queries, dtype=float):
    random = np.random.default_rng(0)
    shapes = (ROWS, queries, 4, 8), (ROWS, 2, 8, SLOTS), (ROWS, 2, SLOTS, 8)
    return tuple(jnp.asarray(random.normal(size=shape), dtype) for shape in shapes)


def places(queries, length):
    """Slots of the last queries of rows of such lengths; of a row without tokens, padding."""
    own = np.asarray(length)[:, None] + np.arange(-queries, 0)
    return jnp.asarray(np.where(own < 0, SLOTS, own))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(cached, "SLOTS", 4)  # whole ones, and a part of one
    monkeypatch.setattr(cached, "QUERIES", 3)


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("queries", [1, 6, 8])
def test_the_written_part_gives_what_the_whole_cache_gives(small_blocks, window, queries):
    config, slots = config_of(window), jnp.arange(SLOTS)[None]
    query, keys, values = arrays(queries)

    @jax.jit
    def whole(own, sliding):
        return attention.attend(query, keys, values, own, slots, sliding, config)

    @jax.jit
    def written(own, sliding, number):
        # What is not written must not be read: it may be anything.
        beyond = slots[0] >= number
        unread = (
            jnp.where(beyond[None, None, None], jnp.nan, keys),
            jnp.where(beyond[None, None, :, None], jnp.nan, values),
        )
        return cached.attend_to_cache(query, *unread, own, sliding, config)

    for length in ((23, 9, 12), (8, 8, 8), (0, 9, 21), (4, 5, 3)):
        own = places(queries, length)
        real = np.asarray(own) < SLOTS
        for sliding in (True, False):
            found = written(own, sliding, -(-max(length) // 4) * 4)
            wanted = whole(own, sliding)
            assert_allclose(found[real], wanted[real], rtol=0, atol=TOLERANCE)


def test_a_window_reads_from_its_beginning(small_blocks):
    config, own = config_of(window=5), places(1, (23, 19, 20))
    query, keys, values = arrays(1)
    wanted = cached.attend_to_cache(query, keys, values, own, jnp.bool_(True), config)
    beyond = jnp.arange(SLOTS) < 12  # the second row's first one is 14
    keys = jnp.where(beyond[None, None, None], jnp.nan, keys)
    found = cached.attend_to_cache(query, keys, values, own, jnp.bool_(True), config)
    assert_array_equal(found, wanted)
    far = cached.attend_to_cache(query, keys, values, own, jnp.bool_(False), config)
    assert np.isnan(far).all()


def test_one_block_is_read_as_before():
    config, own = config_of(), places(2, (23, 9, 12))
    query, keys, values = arrays(2)
    slots = jnp.arange(SLOTS)[None]
    wanted = attention.attend(query, keys, values, own, slots, jnp.bool_(False), config)
    found = cached.attend_to_cache(query, keys, values, own, jnp.bool_(False), config)
    assert_array_equal(found, wanted)


def test_bfloat16_is_summed_in_float32(small_blocks):
    given = arrays(6, jnp.bfloat16)
    own = places(6, (23, 9, 12))
    exact = cached.attend_to_cache(
        *(x.astype(float) for x in given), own, jnp.bool_(False), config_of()
    )
    found = cached.attend_to_cache(*given, own, jnp.bool_(False), config_of(dtype="bfloat16"))
    assert found.dtype == jnp.bfloat16
    # scores, shares and results are rounded to 2^-8 each
    assert_allclose(found.astype(float), exact, rtol=0, atol=0.03)


def test_the_scores_of_all_slots_are_never_together(small_blocks):
    query, keys, values = arrays(9)
    own = places(9, (23, 9, 12))

    def attended(query, keys, values, own):
        return cached.attend_to_cache(query, keys, values, own, jnp.bool_(False), config_of())

    text = jax.jit(attended).lower(query, keys, values, own).compile().as_text()
    assert f"9,{SLOTS}]" not in text


@pytest.mark.parametrize("layers", [2, 5])  # shallow models are unrolled, deep ones scanned
def test_sequences_that_grow_give_the_scorers_hidden_states(small_blocks, layers):
    model = Model(replace(config_of(window=5), num_layers=layers, sliding_layers=(0, layers - 1)))
    params = model.init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (ROWS, 19), 0, 16)
    wanted = model.hidden(params, tokens)
    caches = model.empty_caches(ROWS, SLOTS)
    extend = jax.jit(model.extend)
    positions = jnp.broadcast_to(jnp.arange(19), tokens.shape)
    found = []
    with compilations("extend") as compiled:
        for part in (slice(0, 9), *(slice(i, i + 1) for i in range(9, 19))):
            hidden, caches = extend(params, caches, tokens[:, part], positions[:, part])
            found.append(hidden)
    assert len(compiled) == 2  # the prompt, and a token
    assert_allclose(jnp.concatenate(found, axis=1), wanted, rtol=0, atol=1e-10)
