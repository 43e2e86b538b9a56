"""Choosing exactly k tokens of a batch: the largest, or at random.

Both count over the whole `[B, T]` array without sorting or gathering it, so they shard by rows, and
depend on `rollout_id` and the position in the response only: neither the order of rows nor the
width of the padding changes who is chosen.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from rlvr_jax.objectives.masked import masked_count

__all__ = ["masked_top_k", "random_choice"]


def masked_top_k(
    values: Float[Array, "B T"],
    eligible: Bool[Array, "B T"],
    k: int | Int[Array, ""],
    rollout_id: Int[Array, "B"],
) -> Bool[Array, "B T"]:
    """Chooses the k eligible tokens of largest value; all of them if there are fewer.

    Ties go to the smaller `rollout_id`, then to the earlier position. The k-th largest value is
    found by bisection over the bits of the (order-preserving) integer form of the values.

    Args:
      values: float32 or float64, not NaN where eligible.
      eligible: bool, the tokens to choose from.
      k: how many; may be traced.
      rollout_id: distinct for rows with eligible tokens.
    Returns:
      bool, True on exactly min(k, number eligible) tokens.
    """
    return _first_k(_ordered_bits(values), eligible, k, rollout_id)


def random_choice(
    eligible: Bool[Array, "B T"],
    k: int | Int[Array, ""],
    key: PRNGKeyArray | Shaped[Array, "2"],
    rollout_id: Int[Array, "B"],
) -> Bool[Array, "B T"]:
    """Draws k eligible tokens uniformly without replacement; all of them if there are fewer.

    Every token draws 32 random bits from (key, rollout_id, position); the k largest are chosen.
    Equal draws go to the smaller `rollout_id`; that any two tokens draw the same has chance 2⁻³².

    Args:
      eligible: bool, the tokens to choose from.
      k: how many; may be traced.
      key: PRNG key, used once.
      rollout_id: distinct for rows with eligible tokens.
    Returns:
      bool, True on exactly min(k, number eligible) tokens.
    """
    position = jnp.arange(eligible.shape[1])

    def draw(row, column):
        token_key = jax.random.fold_in(jax.random.fold_in(key, row), column)
        return jax.random.bits(token_key, (), jnp.uint32)

    draws = jax.vmap(jax.vmap(draw, (None, 0)), (0, None))(rollout_id, position)
    return _first_k(draws, eligible, k, rollout_id)


def _first_k(priority, eligible, k, rollout_id):
    """The k eligible tokens of highest (priority, -rollout_id, -position)."""
    num_tokens = eligible.shape[1]
    low_id_first = jnp.broadcast_to(~_ordered_bits(rollout_id)[:, None], eligible.shape)
    early_first = jnp.broadcast_to(
        jnp.arange(num_tokens, dtype=jnp.uint32)[::-1][None], eligible.shape
    )
    levels = (
        (priority, 8 * priority.dtype.itemsize),
        (low_id_first, 8 * low_id_first.dtype.itemsize),
        (early_first, num_tokens.bit_length()),
    )
    left = jnp.minimum(k, masked_count(eligible))
    chosen, tied = jnp.zeros_like(eligible), eligible
    for keys, num_bits in levels:
        threshold = _kth_largest(keys, tied, left, num_bits)
        above = tied & (keys > threshold)
        chosen, tied = chosen | above, tied & (keys == threshold)
        left = left - masked_count(above)
    return chosen | (tied & (left > 0))


def _kth_largest(keys, eligible, k, num_bits):
    """Largest threshold that at least k eligible keys reach, found bit by bit from the top."""
    one = jnp.ones((), keys.dtype)

    def add_bit(i, threshold):
        candidate = threshold | (one << (num_bits - 1 - i).astype(keys.dtype))
        return jnp.where(masked_count(eligible & (keys >= candidate)) >= k, candidate, threshold)

    return jax.lax.fori_loop(0, num_bits, add_bit, jnp.zeros((), keys.dtype))


def _ordered_bits(values):
    """Unsigned integers in the order of the given floats or signed integers."""
    unsigned = jnp.uint64 if values.dtype.itemsize == 8 else jnp.uint32
    top = jnp.ones((), unsigned) << (8 * values.dtype.itemsize - 1)
    if jnp.issubdtype(values.dtype, jnp.integer):
        return jax.lax.bitcast_convert_type(values, unsigned) ^ top
    values = jnp.where(values == 0, 0, values)  # -0 and 0 are one value with two bit patterns
    bits = jax.lax.bitcast_convert_type(values, unsigned)
    return jnp.where(bits >= top, ~bits, bits | top)
