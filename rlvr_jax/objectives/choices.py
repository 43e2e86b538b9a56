"""Choosing exactly k tokens: the largest, of the batch or of each row, or some at random.

Both count over the `[B, T]` array without sorting or gathering it, so they shard by rows, and
depend on `rollout_id` and the position in the response only: neither the order of rows nor the
width of the padding changes who is chosen.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from rlvr_jax.objectives.masked import masked_count
from rlvr_jax.objectives.order_statistics import kth_largest, ordered_bits

__all__ = ["masked_top_k", "random_choice"]


def masked_top_k(
    values: Float[Array, "B T"],
    eligible: Bool[Array, "B T"],
    k: int | Int[Array, "..."],
    rollout_id: Int[Array, "B"],
    count: Callable[[Array], Array] = masked_count,
) -> Bool[Array, "B T"]:
    """Chooses the k eligible tokens of largest value; all of them if there are fewer.

    Ties go to the smaller `rollout_id`, then to the earlier position. The k-th largest value is
    found by bisection over the bits of the (order-preserving) integer form of the values.

    Args:
      values: float32 or float64, not NaN where eligible.
      eligible: bool, the tokens to choose from.
      k: how many; may be traced; one number, or one per set in the shape of what `count` gives.
      rollout_id: distinct for rows with eligible tokens.
      count: (bool [B, T]) -> how many of each set are True, in a shape that broadcasts against
        [B, T]: all of them together, or by `scoped_count`. The choice is made in each set.
    Returns:
      bool, True on exactly min(k, number eligible) tokens of each set.
    """
    return _first_k(ordered_bits(values), eligible, k, rollout_id, count)


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
    return _first_k(draws, eligible, k, rollout_id, masked_count)


def _first_k(priority, eligible, k, rollout_id, count):
    """The k eligible tokens of highest (priority, -rollout_id, -position)."""

    def choose(keys, num_bits, state):
        chosen, tied, left = state
        threshold = kth_largest(keys, tied, left, num_bits, count)
        above = tied & (keys > threshold)
        return chosen | above, tied & (keys == threshold), left - count(above)

    def break_ties(state):
        num_tokens = eligible.shape[1]
        low_id_first = jnp.broadcast_to(~ordered_bits(rollout_id)[:, None], eligible.shape)
        early_first = jnp.arange(num_tokens, dtype=jnp.uint32)[::-1][None]
        early_first = jnp.broadcast_to(early_first, eligible.shape)
        state = choose(low_id_first, 8 * low_id_first.dtype.itemsize, state)
        return choose(early_first, num_tokens.bit_length(), state)

    state = (jnp.zeros_like(eligible), eligible, jnp.minimum(k, count(eligible)))
    state = choose(priority, 8 * priority.dtype.itemsize, state)
    # Equal values are rare, and the two further searches cost as much as the first.
    too_many = jnp.any(count(state[1]) > state[2])
    chosen, tied, left = jax.lax.cond(too_many, break_ties, lambda state: state, state)
    return chosen | (tied & (left > 0))
