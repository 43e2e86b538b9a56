"""Random keys by what they are for: a checkpoint needs no state of a generator."""

from __future__ import annotations

import zlib

import jax
import jax.numpy as jnp

__all__ = ["GENERATOR", "checked_key", "named_key"]

GENERATOR = "threefry2x32"
"""Whatever JAX_DEFAULT_PRNG_IMPL says: with `rbg` what a row draws depends on the other rows."""


def named_key(seed: int, name: str, *numbers: int) -> jax.Array:
    """The random key of a purpose, folded with numbers (step, update)."""
    key = jax.random.fold_in(jax.random.key(seed, impl=GENERATOR), zlib.crc32(name.encode()))
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return key


def checked_key(function: str, key: jax.Array) -> jax.Array:
    """The key, or keys, as `jax.random.key` makes them; those of `jax.random.PRNGKey` are wrapped.

    Raises:
      ValueError: no key, or one of another generator than threefry, with which a rollout would
        depend on its neighbours.
    """
    key = jnp.asarray(key)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.dtype != jnp.uint32 or key.shape[-1:] != (2,):
            raise ValueError(
                f"{function}: key must be one of jax.random.key, got {key.dtype}{list(key.shape)}"
            )
        return jax.random.wrap_key_data(key, impl=GENERATOR)
    generator = str(jax.random.key_impl(key))
    if generator != GENERATOR:
        raise ValueError(
            f"{function}: key must be of the generator {GENERATOR}, got one of {generator};"
            f" jax.random.key(seed, impl={GENERATOR!r}) makes one"
        )
    return key
