"""Rewards for short or long responses. Lengths are tokens of the response, as given in `length`.

With statistics of a group a length term alone orders groups that are all right or all wrong: gate
it on mixed ones, or give it an advantage of its own. Responses that the budget cut are wrong and
longest, so that a penalty for length counts twice on them.
"""

from __future__ import annotations

from jaxtyping import Array, Float

from rlvr_jax.objectives.shaping import check_overlong, overlong_penalty
from rlvr_jax.types.parts import Function, part

__all__ = ["overlong_excess"]

Rows = Float[Array, "B"]


@part
def overlong_excess(max_length: int, cache_length: int, factor: float = 1.0) -> Function:
    """`overlong_penalty` alone, to be a part of a `total`.

    Args:
      max_length, cache_length, factor: as there.
    Raises:
      ValueError: cache_length outside (0, max_length], or a negative factor.
    """
    check_overlong("overlong_excess", max_length, cache_length, factor)

    def reward(rollouts):
        penalty = overlong_penalty(rollouts.length, max_length, cache_length, factor)
        return penalty.astype(rollouts.outcome.dtype)

    return reward
