"""Random keys by what they are for: a checkpoint needs no state of a generator."""

from __future__ import annotations

import zlib

import jax

__all__ = ["named_key"]


def named_key(seed: int, name: str, *numbers: int) -> jax.Array:
    """The random key of a purpose, folded with numbers (step, update)."""
    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(name.encode()))
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return key
