"""Quantiles of all sets of tokens at once, found by counting (`kernels.selection_search`).

Nothing is sorted or gathered, so the functions shard by rows. Results carry no gradient.

A function `reduce` computes sums and extremes: (reduction, values) -> one result, or one per set
in a shape that broadcasts against the values. A reduction is a pair of functions: over axes, and
over segments.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.kernels import selection_search
from rlvr_jax.kernels.selection_search import row_counts

__all__ = ["count_of_sets", "quantile"]

SUM = (jnp.sum, jax.ops.segment_sum)
MIN = (jnp.min, jax.ops.segment_min)
MAX = (jnp.max, jax.ops.segment_max)
Reduce = Callable[[Any, Array], Array]


def quantile(
    values: Float[Array, "..."], mask: Bool[Array, "..."], fraction: float, reduce: Reduce
) -> Float[Array, "..."]:
    """The quantile with numpy's default linear interpolation.

    Let x_0 ≤ … ≤ x_{n-1} be the values on the mask and h = fraction · (n - 1). The result is
    q = x_⌊h⌋ + (h - ⌊h⌋) (x_⌈h⌉ - x_⌊h⌋), or 0 without a value. Values must be finite on the mask.

    Args:
      values: numbers of any shape.
      mask: numbers that count.
      fraction: fraction of the quantile, in [0, 1].
      reduce: reduction over the numbers of a set, as in `Sets`.
    """

    def count(chosen):
        return count_of_sets(chosen, reduce)

    return selection_search.quantile(values, mask, fraction, count, partial(reduce, MIN))


def count_of_sets(chosen: Bool[Array, "..."], reduce: Reduce) -> Int[Array, "..."]:
    """Number of chosen tokens of each set; a set consists of whole rows."""
    return reduce(SUM, row_counts(chosen)).astype(jnp.int32)
