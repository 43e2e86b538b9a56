"""Attention to the written part of a cache: what reading all of it gives, and what is not read."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import compilations
from everyday import everyday
from numpy.testing import assert_allclose, assert_array_equal

from rlvr_jax.parallel import make_mesh, parameter_shardings
from rlvr_jax.policy import LayerCache, Model, attention, cached, named_config

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


def attend(query, keys, values, own, sliding, config):
    return cached.attend_to_cache(query, LayerCache(keys, values), own, sliding, config)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(cached, "SLOTS", 4)  # whole ones, and a part of one
    monkeypatch.setattr(cached, "QUERIES", 3)


@pytest.mark.thorough
@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("queries", [1, 6, 8])
def test_the_written_part_gives_what_the_whole_cache_gives(small_blocks, window, queries):
    config, slots = config_of(window), jnp.arange(SLOTS)[None]
    query, keys, values = arrays(queries)

    @jax.jit
    def whole(own, sliding):
        return attention.attend(attention.Heads(query, keys, values), own, slots, sliding, config)

    @jax.jit
    def written(own, sliding, number):
        # What is not written must not be read: it may be anything.
        beyond = slots[0] >= number
        unread = (
            jnp.where(beyond[None, None, None], jnp.nan, keys),
            jnp.where(beyond[None, None, :, None], jnp.nan, values),
        )
        return cached.attend_to_cache(query, LayerCache(*unread), own, sliding, config)

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
    wanted = attend(query, keys, values, own, jnp.bool_(True), config)
    beyond = jnp.arange(SLOTS) < 12  # the second row's first one is 14
    keys = jnp.where(beyond[None, None, None], jnp.nan, keys)
    found = attend(query, keys, values, own, jnp.bool_(True), config)
    assert_array_equal(found, wanted)
    far = attend(query, keys, values, own, jnp.bool_(False), config)
    assert np.isnan(far).all()


def test_one_block_is_read_whole():
    config, own = config_of(), places(2, (23, 9, 12))
    query, keys, values = arrays(2)
    slots = jnp.arange(SLOTS)[None]
    wanted = attention.attend(
        attention.Heads(query, keys, values), own, slots, jnp.bool_(False), config
    )
    found = attend(query, keys, values, own, jnp.bool_(False), config)
    assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)


@pytest.mark.thorough
def test_bfloat16_is_summed_in_float32(small_blocks):
    given = arrays(6, jnp.bfloat16)
    own = places(6, (23, 9, 12))
    exact = attend(*(x.astype(float) for x in given), own, jnp.bool_(False), config_of())
    found = attend(*given, own, jnp.bool_(False), config_of(dtype="bfloat16"))
    assert found.dtype == jnp.bfloat16
    # scores, shares and results are rounded to 2^-8 each
    assert_allclose(found.astype(float), exact, rtol=0, atol=0.03)


def test_the_scores_of_all_slots_are_never_together(small_blocks):
    query, keys, values = arrays(9)
    own = places(9, (23, 9, 12))

    def attended(query, keys, values, own):
        return attend(query, keys, values, own, jnp.bool_(False), config_of())

    text = jax.jit(attended).lower(query, keys, values, own).compile().as_text()
    assert f"9,{SLOTS}]" not in text


# Shallow models are unrolled, deep ones scanned.
@pytest.mark.thorough
@pytest.mark.parametrize("layers", everyday([2, 5], 5))
def test_sequences_that_grow_give_the_scorers_hidden_states(small_blocks, layers):
    model = Model(replace(config_of(window=5), num_layers=layers, sliding_layers=(0, layers - 1)))
    params = model.init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (ROWS, 19), 0, 16)
    wanted = jax.jit(model.hidden)(params, tokens)
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("blocks", "window", "layers"),
    everyday([(4, None, 2), (4, 5, 5), (512, 5, 2)], (4, 5, 5)),
)
def test_rows_that_share_prompts_give_the_scorers_hidden_states(
    monkeypatch, blocks, window, layers
):
    monkeypatch.setattr(cached, "SLOTS", blocks)
    config = replace(config_of(window), num_layers=layers)
    model = Model(config if window is None else replace(config, sliding_layers=(0, layers - 1)))
    params = model.init(jax.random.key(0))
    length, rows = np.array([9, 2]), np.repeat(np.arange(2), 3)
    tokens = np.random.default_rng(1).integers(0, 16, (6, 16)).astype(np.int32)
    prompts = tokens[::3, :9]
    tokens = np.where(np.arange(16) < length[rows][:, None], tokens[::3][rows], tokens)
    wanted = jax.jit(model.hidden)(params, tokens)
    positions = np.where(np.arange(9) < length[:, None], np.arange(9), 9)
    extend = jax.jit(model.extend)
    _, caches = extend(params, model.empty_caches(2, 9), prompts, positions)
    caches = model.shared_caches(caches, jnp.asarray(length)[rows], 7)
    # From the prompt's last token on, as the sampler does; the third row ends early.
    for step in range(7):
        at = length[rows] - 1 + step
        fed = np.where((np.arange(6) == 2) & (step > 3), 16, at)[:, None]
        token = np.take_along_axis(tokens, at[:, None], axis=1)
        hidden, caches = extend(model.unstacked(params), caches, token, fed)
        for row in range(6):
            if fed[row, 0] < 16:
                assert_allclose(hidden[row, 0], wanted[row, at[row]], rtol=0, atol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kv_heads", "tensor", "kept"),
    everyday([(2, 4, 1), (1, 4, 1), (4, 2, 2), (3, 2, 3)], (2, 4, 1), (3, 2, 3)),
    ids=["more devices", "one head", "fewer devices", "not divided"],
)
def test_a_device_keeps_the_heads_that_its_queries_share(kv_heads, tensor, kept):
    heads = 12 if kv_heads == 3 else 8
    config = replace(config_of(), num_heads=heads, num_kv_heads=kv_heads)
    mesh = make_mesh(f"data={8 // tensor},tensor={tensor}")
    model, own = Model(config), Model(config, mesh=mesh)
    params = model.init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (8, 9), 0, 16)
    wanted = jax.jit(model.hidden)(params, tokens)
    positions = jnp.broadcast_to(jnp.arange(9), tokens.shape)

    @jax.jit
    def sampled(params):
        # Each row answers a prompt of its own, the first five of its tokens.
        _, caches = own.extend(params, own.empty_caches(8, 5), tokens[:, :5], positions[:, :5])
        caches = own.shared_caches(caches, jnp.full(8, 5), 4)
        found = []
        for place in range(5, 9):
            at = slice(place, place + 1)
            hidden, caches = own.extend(
                own.unstacked(params), caches, tokens[:, at], positions[:, at]
            )
            found.append(hidden)
        return jnp.concatenate(found, axis=1), caches

    hidden, caches = sampled(jax.device_put(params, parameter_shardings(config, mesh)))
    assert_allclose(hidden, wanted[:, 5:], rtol=0, atol=1e-10)
    for cache in (caches[0].prompts, caches[0].own):
        part = cache.keys.sharding.shard_shape(cache.keys.shape)
        assert part[:2] == (tensor, kept)


@pytest.mark.thorough
def test_rows_that_share_prompts_take_one_token_at_a_time():
    model = Model(config_of())
    params, tokens = model.init(jax.random.key(0)), jnp.ones((2, 2), int)
    caches = model.shared_caches(model.empty_caches(2, 4), jnp.array([4, 4]), 7)
    with pytest.raises(ValueError, match="a shared cache takes one token at a time, got 2"):
        model.extend(params, caches, tokens, tokens)
