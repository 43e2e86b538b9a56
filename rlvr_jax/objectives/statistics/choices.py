"""Choosing exactly k tokens: the largest, of the batch or of each row, or some at random.

Both count over the `[B, T]` array without sorting or gathering it, so they shard by rows, and
depend on `rollout_id` and the position in the response only: neither the order of rows nor the
width of the padding changes who is chosen.
"""

from collections.abc import Callable

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from rlvr_jax.kernels.selection import random_subset, top_k
from rlvr_jax.kernels.selection_search import first_k, ordered_bits


def masked_top_k(
    values: Float[Array, "B T"],
    eligible: Bool[Array, "B T"],
    k: int | Int[Array, "..."],
    rollout_id: Int[Array, "B"],
    count: Callable[[Array], Array] | None = None,
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
        [B, T], e.g. by `scoped_count`. The choice is made in each set. None: in all together.
    Returns:
      bool, True on exactly min(k, number eligible) tokens of each set.
    """
    if count is None:
        return top_k(values, eligible, k, rollout_id)
    return first_k(ordered_bits(values), eligible, k, rollout_id, count)


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
    return random_subset(eligible, k, key, rollout_id)
