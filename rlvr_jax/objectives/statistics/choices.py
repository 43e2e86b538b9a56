"""Choosing exactly k tokens: the largest, of the batch or of each row, or some at random.

Both functions count over the `[B, T]` array and neither sort nor gather, so they shard by rows.
They depend only on `rollout_id` and the position in the response: the order of the rows and the
width of the padding do not change the choice.
"""

from collections.abc import Callable

from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Shaped

from rlvr_jax.kernels.selection import random_subset, top_k
from rlvr_jax.kernels.selection_search import first_k, ordered_bits
from rlvr_jax.types import Ids, Mask


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
      eligible: tokens that may be chosen.
      k: may be traced; one number, or one per set in the shape of the result of `count`.
      rollout_id: distinct for rows with eligible tokens.
      count: (bool [B, T]) -> number of True tokens of each set, in a shape that broadcasts against
        [B, T]; see `scoped_count`. k tokens of each set are chosen. None: all tokens are one set.
    Returns:
      True on exactly min(k, number eligible) tokens of each set.
    """
    if count is None:
        return top_k(values, eligible, k, rollout_id)
    return first_k(ordered_bits(values), eligible, k, rollout_id, count)


def random_choice(
    eligible: Mask, k: int | Int[Array, ""], key: PRNGKeyArray | Shaped[Array, "2"], rollout_id: Ids
) -> Mask:
    """Samples k eligible tokens uniformly without replacement; all of them if there are fewer.

    Every token has 32 random bits from (key, rollout_id, position); the k largest are chosen. Equal
    bits, of probability 2⁻³² for two tokens, go to the smaller `rollout_id`.

    Args:
      eligible: tokens that may be chosen.
      k: may be traced.
      key: PRNG key, used once.
      rollout_id: distinct for rows with eligible tokens.
    """
    return random_subset(eligible, k, key, rollout_id)
