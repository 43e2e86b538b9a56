"""The draw from a distribution over a vocabulary, with the digits of float32."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

_TILE = 512  # tokens of the vocabulary that one uniform number chooses among


def tiled(logits: Float[Array, "R V"]) -> tuple[Float[Array, "R n t"], Float[Array, "R n"]]:
    """Logits less the largest of the row, tile by tile, and Σ exp over each tile."""
    rows, vocabulary = logits.shape
    tile = min(_TILE, vocabulary)
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    padding = (0, 0), (0, -vocabulary % tile)
    tiles = jnp.pad(shifted, padding, constant_values=-jnp.inf).reshape(rows, -1, tile)
    return tiles, jnp.sum(jnp.exp(tiles), axis=-1)


def chosen(
    tiles: Float[Array, "R n t"],
    mass: Float[Array, "R n"],
    uniform: Float[Array, "Q 2"],
    slot: Int[Array, "Q"] | None = None,
) -> tuple[Int[Array, "Q"], Float[Array, "Q"]]:
    """Samples a token of the row in each slot, first a tile of the vocabulary, then a token of it.

    One float32 sum and one float32 uniform over a large vocabulary would move a few tenths of a
    percent of the mass between rare tokens.

    Args:
      tiles: logits of n tiles with t tokens each.
      mass: sum of exp(logit) of each tile.
      uniform: two random numbers in [0, 1) for each sample: for the token and for the tile.
      slot: row of each sample; None: all rows, in order.
    Returns:
      (tokens, log-probs).
    """
    if slot is not None:
        mass = mass[slot]
    place = _invert(mass, uniform[:, 1])
    if slot is None:
        inside = jnp.take_along_axis(tiles, place[:, None, None], axis=1)[:, 0]
    else:
        inside = tiles[slot, place]
    offset = _invert(jnp.exp(inside), uniform[:, 0])
    logit = jnp.take_along_axis(inside, offset[:, None], axis=-1)[:, 0]
    return place * tiles.shape[-1] + offset, logit - jnp.log(jnp.sum(mass, axis=-1))


def _invert(mass: Float[Array, "R n"], uniform: Float[Array, "R"]) -> Int[Array, "R"]:
    """The first entry with mass whose cumulative mass exceeds u · total."""
    # A parallel cumulative sum may rise by rounding where an entry has no mass.
    cumulative = jnp.where(mass > 0, jnp.cumsum(mass, axis=-1), 0)
    total = jnp.max(cumulative, axis=-1, keepdims=True)
    target = uniform[:, None].astype(total.dtype) * total
    return jnp.argmax(cumulative > target, axis=-1).astype(jnp.int32)


def entropy(logits: Float[Array, "R V"]) -> Float[Array, "R"]:
    """Entropy of the distribution of each row, in nats."""
    shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
    mass = jnp.exp(shifted)
    total = jnp.sum(mass, axis=-1)
    return jnp.log(total) - jnp.sum(mass * shifted, axis=-1) / total
