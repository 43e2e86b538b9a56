"""Attention in blocks of queries: what one block gives, forward and backward."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from rlvr_jax.policy import attention, named_config

# float64 sums of at most 23 terms in another order, against entries of order one
TOLERANCE = 1e-12


def arrays(queries, keys, rows=2, heads=4, kv_heads=2, size=8):
    random = np.random.default_rng(0)
    shapes = (
        (rows, queries, heads, size),
        (rows, kv_heads, size, keys),
        (rows, kv_heads, keys, size),
    )
    return tuple(jnp.asarray(random.normal(size=shape)) for shape in shapes)


def by_hand(query, key, value, own, slots, window):
    """Numpy, a query after the other."""
    query, key, value = map(np.asarray, (query, key, value))
    y = np.zeros(query.shape)
    for row, place, head in np.ndindex(query.shape[:3]):
        shared = head * key.shape[1] // query.shape[2]
        scores = query[row, place, head] @ key[row, shared] / np.sqrt(query.shape[-1])
        seen = slots[0] <= own[row, place]
        if window:
            seen &= slots[0] > own[row, place] - window
        shares = np.where(seen, np.exp(scores - scores.max()), 0)
        y[row, place, head] = shares @ value[row, shared] / shares.sum()
    return y.reshape(*y.shape[:2], -1)


@pytest.mark.thorough
@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize(("queries", "keys"), [(23, 23), (11, 23)])
def test_blocks_give_what_one_block_gives(monkeypatch, queries, keys, window):
    sliding = {} if window is None else {"sliding_window": window, "sliding_layers": (0,)}
    more = {"local_rope_theta": 10.0} if window else {}
    config = named_config("tiny", 16, compute_dtype="float64", **sliding, **more)
    given = arrays(queries, keys)
    # The second row's queries stand further back: as behind a longer prompt in a cache.
    own = jnp.arange(queries)[None] + jnp.array([[0], [keys - queries]])
    slots = jnp.arange(keys)[None]

    def total(query, key, value):
        y = attention.attend(
            attention.Heads(query, key, value), own, slots, jnp.bool_(window is not None), config
        )
        return jnp.sum(jnp.sin(y)), y

    def both():
        return jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2), has_aux=True))(*given)

    (_, whole), gradients = both()
    assert_allclose(whole, by_hand(*given, np.asarray(own), np.asarray(slots), window), atol=1e-12)
    monkeypatch.setattr(attention, "QUERIES", 4)  # whole blocks, and a part of one
    (_, blocks), found = both()
    assert_allclose(blocks, whole, rtol=0, atol=TOLERANCE)
    for ours, wanted in zip(found, gradients, strict=True):
        assert_allclose(ours, wanted, rtol=0, atol=TOLERANCE)


def test_the_scores_of_all_queries_are_never_together(monkeypatch):
    config = named_config("tiny", 16)
    monkeypatch.setattr(attention, "QUERIES", 8)
    shapes = jax.eval_shape(lambda: arrays(48, 48))

    def total(query, key, value):
        places = jnp.arange(48)[None]
        y = attention.attend(
            attention.Heads(query, key, value), places, places, jnp.bool_(False), config
        )
        return jnp.sum(y)

    text = jax.jit(jax.grad(total, argnums=(0, 1, 2))).lower(*shapes).compile().as_text()
    assert "8,48]" in text
    assert "48,48]" not in text
