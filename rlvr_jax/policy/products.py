"""Products of arrays that keep the digits of their operands on every platform.

Accelerators round operands in float32 to fewer bits unless told not to: a GPU to those of
TensorFloat-32, a TPU to bfloat16. The sampler and the scorer would then disagree by 1e-3 in
log-probs, where the ratio of their probabilities is to be 1. Who wants speed instead asks for
`compute_dtype="bfloat16"`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["einsum", "matmul", "ragged_dot"]


def einsum(
    subscripts: str, *operands: Float[Array, "..."], preferred_element_type: Any = None
) -> Float[Array, "..."]:
    """`jnp.einsum` in the precision of its operands."""
    precision = _precision(*operands)
    return jnp.einsum(
        subscripts, *operands, precision=precision, preferred_element_type=preferred_element_type
    )


def matmul(left: Float[Array, "N D"], right: Float[Array, "D E"]) -> Float[Array, "N E"]:
    """`left @ right` in the precision of its operands."""
    return jnp.matmul(left, right, precision=_precision(left, right))


def ragged_dot(
    rows: Float[Array, "N D"], matrices: Float[Array, "G D E"], sizes: Array
) -> Float[Array, "N E"]:
    """`jax.lax.ragged_dot` in the precision of its operands."""
    precision = _precision(rows, matrices)
    return jax.lax.ragged_dot(rows, matrices, sizes, precision=precision)


def _precision(*operands: Array) -> jax.lax.Precision | None:
    """Of two operands in bfloat16 products are exact in any case."""
    narrow = all(each.dtype == jnp.bfloat16 for each in operands)
    return None if narrow else jax.lax.Precision.HIGHEST
