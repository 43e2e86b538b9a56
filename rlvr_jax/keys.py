"""Random keys by purpose: a checkpoint needs no state of a generator."""

import zlib

import jax
import jax.numpy as jnp

GENERATOR = "threefry2x32"
"""Independent of JAX_DEFAULT_PRNG_IMPL: with `rbg` tokens of a row depend on the other rows."""


def plain_key(seed: int) -> jax.Array:
    """The key of a seed, of this generator."""
    return jax.random.key(seed, impl=GENERATOR)


def named_key(seed: int, name: str, *numbers: int) -> jax.Array:
    """The random key of a purpose, folded with numbers (step, update)."""
    key = jax.random.fold_in(plain_key(seed), zlib.crc32(name.encode()))
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return key


def checked_key(function: str, key: jax.Array, *shape: int) -> jax.Array:
    """The key, or keys, as `jax.random.key` makes them; those of `jax.random.PRNGKey` are wrapped.

    Args:
      shape: of the keys; none: one key.
    Raises:
      ValueError: no key, keys of another shape, or of another generator than threefry, with which
        a rollout would depend on its neighbours.
    """
    try:
        key = jnp.asarray(key)
    except (TypeError, ValueError):
        raise ValueError(f"{function}: key must be one of jax.random.key, got {key!r}") from None
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        if key.dtype != jnp.uint32 or key.shape[-1:] != (2,):
            raise ValueError(
                f"{function}: key must be one of jax.random.key, got {key.dtype}{list(key.shape)}"
            )
        key = jax.random.wrap_key_data(key, impl=GENERATOR)
    if key.shape != shape:
        wanted = f"keys of the shape {list(shape)}" if shape else "one key"
        raise ValueError(f"{function}: key must be {wanted}, got {list(key.shape)}")
    generator = str(jax.random.key_impl(key))
    if generator != GENERATOR:
        raise ValueError(
            f"{function}: key must be of the generator {GENERATOR}, got one of {generator};"
            f" jax.random.key(seed, impl={GENERATOR!r}) makes one"
        )
    return key
