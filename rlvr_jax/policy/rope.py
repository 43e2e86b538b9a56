"""Rotary positions: the pairs (x_i, x_{i + H/2}) of a head turn with the position."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rlvr_jax.policy import products
from rlvr_jax.policy.config import ModelConfig, RopeScaling, wide_dtype

RotaryTable = tuple[Float[Array, "B S 1 h"], Float[Array, "B S 1 h"]]
"""Cosine and sine of the angle of every pair at every position."""


def rotary_tables(positions: Int[Array, "B S"], config: ModelConfig) -> tuple[RotaryTable, ...]:
    """Tables of position · θ^(-2i/H), in float32 or wider.

    Returns:
      The table of layers that see everything, and, if some layers have a sliding window, theirs.
    """
    half = config.head_size // 2
    dtype = wide_dtype(config.compute_dtype)

    def frequencies(theta):
        return theta ** (-jnp.arange(half, dtype=dtype) / half)

    def table(frequency):
        angle = positions[:, :, None, None].astype(dtype) * frequency[None, None, None]
        # Without the barrier XLA recomputes sines and cosines for every head, layer and pass.
        return jax.lax.optimization_barrier((jnp.cos(angle), jnp.sin(angle)))

    far = frequencies(config.rope_theta)
    if config.rope_scaling is not None:
        far = stretched(far, config.rope_scaling)
    if not config.sliding_layers:
        return (table(far),)
    return table(far), table(frequencies(config.local_rope_theta))


def stretched(
    frequency: Float[Array | np.ndarray, "h"], scaling: RopeScaling
) -> Float[Array | np.ndarray, "h"]:
    """Returns frequencies (radians per position), scaled by `scaling`.

    Source: the reference code of Llama 3.1, https://github.com/meta-llama/llama-models; linear:
    Chen et al. 2023, https://arxiv.org/abs/2306.15595.
    """
    if scaling.original_positions is None:
        return frequency / scaling.factor
    turns = scaling.original_positions * frequency / (2 * math.pi)
    unscaled = (turns - scaling.low_turns) / (scaling.high_turns - scaling.low_turns)
    unscaled = jnp.clip(unscaled, 0, 1)
    return unscaled * frequency + (1 - unscaled) * frequency / scaling.factor


def rotary(
    x: Float[Array, "B S n H"], table: RotaryTable, by_product: bool = False
) -> Float[Array, "B S n H"]:
    """Turns queries or keys by the angles of a table.

    Args:
      by_product: swaps the halves by a product with a matrix of 0, 1 and -1, which is exact. It is
        for TPUs, whose memory has lanes of 128 numbers. Separate halves of a head would leave gaps
        in them and need two copies. The operands of a product do not.
    """
    cos, sin = table
    if by_product:
        turned = products.matmul(x.reshape(-1, x.shape[-1]), _quarter_turn(x.shape[-1], x.dtype))
        turned = turned.reshape(x.shape).astype(cos.dtype) * jnp.concatenate([sin, sin], axis=-1)
        straight = x.astype(cos.dtype) * jnp.concatenate([cos, cos], axis=-1)
        return (straight + turned).astype(x.dtype)
    first, second = jnp.split(x.astype(cos.dtype), 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x.dtype)


def _quarter_turn(size: int, dtype: Any) -> Float[Array, "H H"]:
    """x @ this is the factor of the sine: (-second half, first half)."""
    half = np.eye(size // 2)
    none = np.zeros_like(half)
    return jnp.asarray(np.block([[none, half], [-half, none]]), dtype)
