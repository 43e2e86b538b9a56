"""The k-th largest value, the first k tokens and quantiles, found by counting.

Nothing is sorted or gathered. A bisection over the bits of the values counts 32 or 64 times the
values that reach a threshold. A count is an integer, so the result has equal bits for every split
of the tokens over devices. Devices exchange one integer per round. Results carry no gradient.

`count` is (bool) -> number of True entries of a set, in a shape that broadcasts against the values.
With one number per set, all sets are searched at the same time. `kth` is `kth_largest` or another
function of its signature.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt

_Count = Callable[[Array], Array]
_Kth = Callable[[UInt[Array, "..."], Bool[Array, "..."], Int[Array, "..."], int, _Count], Array]
_BYTES = 32  # so many entries are counted in a byte


def ordered_bits(values: Array) -> UInt[Array, "..."]:
    """Unsigned integers in the order of the given floats or signed integers; -0 is 0.

    Not for NaN.
    """
    unsigned, top = _unsigned(values.dtype)
    if jnp.issubdtype(values.dtype, jnp.integer):
        return jax.lax.bitcast_convert_type(values, unsigned) ^ top
    values = jnp.where(values == 0, 0, values)  # -0 and 0 are one value with two bit patterns
    bits = jax.lax.bitcast_convert_type(values, unsigned)
    return jnp.where(bits >= top, ~bits, bits | top)


def row_counts(chosen: Bool[Array, "... T"]) -> Int[Array, "... 1"]:
    """Number of True entries along the last axis, int32.

    XLA for CPU stores the operand of a reduction, so there the entries are added as bytes first:
    a third of the time.
    """

    def plain(chosen):
        return jnp.sum(chosen, axis=-1, keepdims=True, dtype=jnp.int32)

    def bytewise(chosen):
        *rows, width = chosen.shape
        padding = [(0, 0)] * len(rows) + [(0, -width % _BYTES)]
        pieces = jnp.pad(chosen, padding).reshape(*rows, _BYTES, -(-width // _BYTES))
        counts = jnp.sum(pieces, axis=-2, dtype=jnp.int8)
        return jnp.sum(counts, axis=-1, keepdims=True, dtype=jnp.int32)

    if chosen.shape[-1] < _BYTES:
        return plain(chosen)
    return jax.lax.platform_dependent(chosen, cpu=bytewise, default=plain)


def kth_largest(
    keys: UInt[Array, "..."],
    eligible: Bool[Array, "..."],
    k: Int[Array, "..."],
    num_bits: int,
    count: _Count,
) -> UInt[Array, "..."]:
    """Largest threshold that at least k eligible keys reach, found bit by bit from the top.

    Args:
      keys: below 2^num_bits.
      k: in the shape of the results of `count`.
    """
    one = jnp.ones((), keys.dtype)
    # No candidate is 0, so a key of 0 is never counted; the loop then reads one array, not two.
    keys = jnp.where(eligible, keys, 0)

    def add_bit(i, threshold):
        candidate = threshold | (one << (num_bits - 1 - i).astype(keys.dtype))
        return jnp.where(count(keys >= candidate) >= k, candidate, threshold)

    return jax.lax.fori_loop(0, num_bits, add_bit, jnp.zeros(k.shape, keys.dtype))


def first_k(
    priority: UInt[Array, "B T"],
    eligible: Bool[Array, "B T"],
    k: int | Int[Array, "..."],
    rollout_id: Int[Array, "B"],
    count: _Count,
    kths: tuple[_Kth, _Kth] = (kth_largest, kth_largest),
) -> Bool[Array, "B T"]:
    """The k eligible tokens of highest priority; all of them if there are fewer.

    Ties go to the smaller `rollout_id`, then to the earlier position.

    Args:
      k: how many; may be traced; one number, or one per set.
      rollout_id: distinct for rows with eligible tokens.
      kths: `kth` for the priority, and for ties.
    """
    kth_priority, kth_tied = kths

    def choose(kth, keys, num_bits, state):
        chosen, tied, left = state
        threshold = kth(keys, tied, left, num_bits, count)
        above = tied & (keys > threshold)
        return chosen | above, tied & (keys == threshold), left - count(above)

    def break_ties(state):
        num_tokens = eligible.shape[1]
        low_id_first = jnp.broadcast_to(~ordered_bits(rollout_id)[:, None], eligible.shape)
        early_first = jnp.arange(num_tokens, dtype=jnp.uint32)[::-1][None]
        early_first = jnp.broadcast_to(early_first, eligible.shape)
        state = choose(kth_tied, low_id_first, 8 * low_id_first.dtype.itemsize, state)
        return choose(kth_tied, early_first, num_tokens.bit_length(), state)

    state = (jnp.zeros_like(eligible), eligible, jnp.minimum(k, count(eligible)))
    state = choose(kth_priority, priority, 8 * priority.dtype.itemsize, state)
    # Equal values are rare, and the two further searches cost as much as the first.
    too_many = jnp.any(count(state[1]) > state[2])
    chosen, tied, left = jax.lax.cond(too_many, break_ties, lambda state: state, state)
    return chosen | (tied & (left > 0))


def of_rank(
    rank: Int[Array, "..."],
    values: Float[Array, "..."],
    mask: Bool[Array, "..."],
    count: _Count,
    kth: _Kth = kth_largest,
) -> Float[Array, "..."]:
    """The value with `rank` others before it in ascending order; the set must not be empty."""
    unsigned, top = _unsigned(values.dtype)
    num_bits = 8 * values.dtype.itemsize
    key = kth(ordered_bits(values), mask, count(mask) - rank, num_bits, count)
    bits = jnp.where(key >= top, key ^ top, ~key)
    return jax.lax.bitcast_convert_type(bits.astype(unsigned), values.dtype)


def quantile(
    values: Float[Array, "..."],
    mask: Bool[Array, "..."],
    fraction: float | Float[Array, ""],
    count: _Count,
    smallest: Callable[[Array], Array],
    kth: _Kth = kth_largest,
) -> Float[Array, "..."]:
    """As `selection.quantile`, of one set or of several.

    Args:
      smallest: (values) -> the smallest of each set, as `count`.
    """
    values = jax.lax.stop_gradient(values)
    total = count(mask)
    last = jnp.maximum(total - 1, 0)
    position = fraction * last.astype(values.dtype)
    below = jnp.clip(jnp.floor(position).astype(jnp.int32), 0, last)
    low = of_rank(below, values, mask, count, kth)
    # The next one up is the same value again, or the smallest of the larger ones.
    repeated = count(mask & (values <= low)) > below + 1
    larger = smallest(jnp.where(mask & (values > low), values, jnp.inf))
    high = jnp.where(repeated | (below == last), low, larger)
    result = low + (position - below.astype(values.dtype)) * (high - low)
    return jnp.where(total > 0, result, 0)


def _unsigned(dtype):
    unsigned = jnp.uint64 if dtype.itemsize == 8 else jnp.uint32
    return unsigned, jnp.ones((), unsigned) << (8 * dtype.itemsize - 1)
