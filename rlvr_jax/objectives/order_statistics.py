"""The k-th largest value and quantiles, found by counting.

Nothing is sorted or gathered: a bisection over the bits of the values asks 32 or 64 times how many
reach a threshold. So it shards by rows, and works for all sets of tokens at once if the counts are
taken per set. Results carry no gradient.

Sums and extremes are taken by a function `reduce`: (reduction, values) -> one result, or one per
set in a shape that broadcasts against the values. A reduction is a pair of functions, over axes
and over segments.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt

__all__ = [
    "MAX",
    "MIN",
    "SUM",
    "Reduce",
    "kth_largest",
    "nearest_quantile",
    "ordered_bits",
    "quantile",
]

SUM = (jnp.sum, jax.ops.segment_sum)
MIN = (jnp.min, jax.ops.segment_min)
MAX = (jnp.max, jax.ops.segment_max)
Reduce = Callable[[Any, Array], Array]


def ordered_bits(values: Array) -> UInt[Array, "..."]:
    """Unsigned integers in the order of the given floats or signed integers."""
    unsigned, top = _unsigned(values.dtype)
    if jnp.issubdtype(values.dtype, jnp.integer):
        return jax.lax.bitcast_convert_type(values, unsigned) ^ top
    values = jnp.where(values == 0, 0, values)  # -0 and 0 are one value with two bit patterns
    bits = jax.lax.bitcast_convert_type(values, unsigned)
    return jnp.where(bits >= top, ~bits, bits | top)


def kth_largest(
    keys: UInt[Array, "..."],
    eligible: Bool[Array, "..."],
    k: Int[Array, "..."],
    num_bits: int,
    count: Callable[[Array], Array],
) -> UInt[Array, "..."]:
    """Largest threshold that at least k eligible keys reach, found bit by bit from the top.

    Args:
      keys: below 2^num_bits.
      k: in the shape of what `count` gives.
      count: (bool) -> how many of a set are True.
    """
    one = jnp.ones((), keys.dtype)

    def add_bit(i, threshold):
        candidate = threshold | (one << (num_bits - 1 - i).astype(keys.dtype))
        return jnp.where(count(eligible & (keys >= candidate)) >= k, candidate, threshold)

    return jax.lax.fori_loop(0, num_bits, add_bit, jnp.zeros(k.shape, keys.dtype))


def quantile(
    values: Float[Array, "..."], mask: Bool[Array, "..."], fraction: float, reduce: Reduce
) -> Float[Array, "..."]:
    """The quantile with linear interpolation, the default rule of numpy.

    With x_0 ≤ … ≤ x_{n-1} the values on the mask and h = fraction · (n - 1):
    q = x_⌊h⌋ + (h - ⌊h⌋) (x_⌈h⌉ - x_⌊h⌋). 0 if there is no value.

    Args:
      values: finite on the mask.
      fraction: in [0, 1].
    """
    values = jax.lax.stop_gradient(values)
    total = _count(mask, reduce)
    last = jnp.maximum(total - 1, 0)
    position = fraction * last.astype(values.dtype)
    below = jnp.clip(jnp.floor(position).astype(jnp.int32), 0, last)
    low = _of_rank(below, values, mask, reduce)
    # The next one up is the same value again, or the smallest of the larger ones.
    repeated = _count(mask & (values <= low), reduce) > below + 1
    larger = reduce(MIN, jnp.where(mask & (values > low), values, jnp.inf))
    high = jnp.where(repeated | (below == last), low, larger)
    result = low + (position - below.astype(values.dtype)) * (high - low)
    return jnp.where(total > 0, result, 0)


def nearest_quantile(
    values: Float[Array, "..."], mask: Bool[Array, "..."], fraction: float, reduce: Reduce
) -> Float[Array, "..."]:
    """The value of rank fraction · (n - 1), rounded, halves to the even rank; 0 if there is none.

    Args:
      values: finite on the mask.
      fraction: in [0, 1].
    """
    values = jax.lax.stop_gradient(values)
    total = _count(mask, reduce)
    last = jnp.maximum(total - 1, 0)
    rank = jnp.round(fraction * last.astype(values.dtype)).astype(jnp.int32)
    return jnp.where(total > 0, _of_rank(rank, values, mask, reduce), 0)


def _of_rank(rank, values, mask, reduce):
    """The value with `rank` others before it in ascending order; the set must not be empty."""
    unsigned, top = _unsigned(values.dtype)

    def count(chosen):
        return _count(chosen, reduce)

    num_bits = 8 * values.dtype.itemsize
    key = kth_largest(ordered_bits(values), mask, count(mask) - rank, num_bits, count)
    bits = jnp.where(key >= top, key ^ top, ~key)
    return jax.lax.bitcast_convert_type(bits.astype(unsigned), values.dtype)


def _count(chosen, reduce):
    return reduce(SUM, chosen.astype(jnp.int32)).astype(jnp.int32)


def _unsigned(dtype):
    unsigned = jnp.uint64 if dtype.itemsize == 8 else jnp.uint32
    return unsigned, jnp.ones((), unsigned) << (8 * dtype.itemsize - 1)
