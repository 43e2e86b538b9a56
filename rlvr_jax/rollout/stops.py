"""Sequences of tokens that pause a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from rlvr_jax.rollout.pool import FINISHED, STOPPED, Pool

__all__ = ["aligned", "paused_at_sequence"]


def aligned(sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray] | None:
    """Stop sequences [K, L], right-aligned, and which of the places each has; None if no such."""
    if not sequences:
        return None
    sizes = [len(sequence) for sequence in sequences]
    places = np.arange(max(sizes)) >= max(sizes) - np.array(sizes)[:, None]
    tokens = np.zeros(places.shape, np.int32)
    tokens[places] = np.concatenate([np.asarray(sequence, np.int32) for sequence in sequences])
    return tokens, places


def paused_at_sequence(
    pool: Pool,
    drawn: Bool[Array, "R"],
    sequences: Int[np.ndarray, "K L"],
    places: Bool[np.ndarray, "K L"],
) -> Pool:
    """The pool with those rows STOPPED that have drawn the end of a sequence."""
    width = sequences.shape[1]
    at = pool.length[:, None] - width + jnp.arange(width, dtype=jnp.int32)[None]
    last = jnp.take_along_axis(pool.tokens, jnp.maximum(at, 0), axis=1)
    alike = (last[:, None] == sequences[None]) & (at >= pool.prompt_length[:, None])[:, None]
    match = jnp.all(alike | ~places[None], axis=-1)
    found = drawn & (pool.status != FINISHED) & jnp.any(match, axis=-1)
    return replace(
        pool,
        status=jnp.where(found, STOPPED, pool.status),
        stop=jnp.where(found, jnp.argmax(match, axis=-1).astype(jnp.int32), pool.stop),
    )
