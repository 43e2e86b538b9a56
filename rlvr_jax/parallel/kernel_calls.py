"""What kernels of Pallas do, read from the arrays that a compiled program hands them.

The compiler estimates nothing for them. They are counted at their own roofline: products at the
chip's peak, or their arrays, moved once, at its bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlvr_jax.parallel.roofline import Work
from rlvr_jax.policy.flash import flash_pairs

__all__ = ["kernel_work"]

_PRODUCTS = {"splash_mqa_fwd": 2, "splash_mqa_dq": 3, "splash_mqa_dkv": 4}
"""Of queries and keys with the entries of a head; scores are made anew for a gradient."""


def kernel_work(name: str, operands: Sequence[tuple[str, Sequence[int]]], moved: int) -> Work:
    """The work of one call.

    Args:
      name: that the call has in the program, which begins with the kernel's.
      operands: type and shape of each.
      moved: bytes of operands and results.
    """
    floats = [shape for kind, shape in operands if kind in ("bf16", "f32")]
    for kernel, products in _PRODUCTS.items():
        if name.startswith(kernel):
            query, key = floats[:2]
            *heads, queries, size = query
            pairs = math.prod(heads) * flash_pairs(queries, key[-2])
            return Work(2.0 * products * pairs * size, moved)
    if name.startswith("token_stats"):
        (tokens, width), (vocabulary, _) = floats[:2]
        return Work(2.0 * tokens * vocabulary * width, moved)
    if name.startswith("ragged-dot") and floats:
        (rows, _), (_, *matrix) = floats[:2]
        return Work(2.0 * rows * math.prod(matrix), moved)
    if name.startswith("tgmm"):  # the gradient of the matrices of the former
        (rows, width), (_, inner) = floats[:2]
        return Work(2.0 * rows * width * inner, moved)
    # Those that pass over arrays and multiply nothing.
    return Work(0.0, moved)
