"""The k most probable tokens of rows, and the gradient of their log-probs to the logits.

dl_j/dz_v = 1[v = j] - p_v      for each of the k ids j, which are constants
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Coefficients(NamedTuple):
    """Numbers per token of the backward pass: the ids, and the terms of their logits."""

    ids: Int[Array, "n k"]
    factor: Float[Array, "n k"]


def largest(
    logits: Float[Array, "n v"], top_k: int, axis_name: str | None
) -> tuple[Float[Array, "n k"], Int[Array, "n k"]]:
    """The `top_k` largest logits, descending, and their ids; equal ones by ascending id.

    Args:
      logits: of this device's part of the vocabulary.
      axis_name: the mesh axis that holds the parts; None: this is all of it.
    """
    values, ids = jax.lax.top_k(logits, min(top_k, logits.shape[1]))
    if axis_name is None:
        return values, ids
    ids = ids + jax.lax.axis_index(axis_name) * logits.shape[1]
    gather = partial(jax.lax.all_gather, axis_name=axis_name, axis=1, tiled=True)
    values, ids = gather(values), gather(ids)
    values, place = jax.lax.top_k(values, top_k)
    return values, jnp.take_along_axis(ids, place, axis=1)


def coefficients(
    ids: Int[Array, "n k"],
    cotangent: Float[Array, "n k"],
    inverse_temperature: Float[Array, "n"] | None,
) -> Coefficients:
    """The part 1[v = j]; that of p is in `algebra.coefficients`.

    Args:
      ids: as indices into this device's part of the vocabulary.
      cotangent: dL/d(topk_logp).
    """
    if inverse_temperature is not None:
        cotangent = cotangent * inverse_temperature[:, None]
    return Coefficients(ids, cotangent)


def add_gradient(
    gradient: Float[Array, "n v"], numbers: Coefficients, first: Int[Array, ""]
) -> Float[Array, "n v"]:
    """The gradient of a tile whose first entry is `first`, with that of the ids inside it added."""
    column = numbers.ids - jnp.asarray(first, jnp.int32)
    size = gradient.shape[1]
    # Negative indices would count from the end.
    column = jnp.where((column >= 0) & (column < size), column, size)
    row = jnp.arange(gradient.shape[0], dtype=jnp.int32)[:, None]
    return gradient.at[row, column].add(numbers.factor, mode="drop")
