"""Credit by the outcome alone: a fixed push for right answers, a fixed one for wrong answers."""

from jaxtyping import Array, Float

from rlvr_jax.objectives.advantages.group_relative import rollout_advantage
from rlvr_jax.objectives.algebra.parts import Transform
from rlvr_jax.types.parts import part

__all__ = ["outcome_push", "signed_by_outcome"]


def outcome_push(outcome: Float[Array, "B"], right: float, wrong: float) -> Float[Array, "B"]:
    """right where the outcome is 1, -wrong where it is 0, 0 where it is neither."""
    is_right, is_wrong = ((outcome == value).astype(outcome.dtype) for value in (1, 0))
    return right * is_right - wrong * is_wrong


@part
def signed_by_outcome(right: float, wrong: float) -> Transform:
    """`outcome_push` as advantage.

    There is no baseline: groups of equal outcomes are trained on as well.

    Args:
      right: push for right answers, at least 0.
      wrong: push against wrong answers, at least 0.
    Reads: outcome. Writes: advantage. Metrics: none.
    Raises:
      ValueError: a negative push, or both 0.
    Source: https://github.com/TianHongZXY/RLVR-Decomposed.
    """
    if not (right >= 0 and wrong >= 0 and right + wrong > 0):
        raise ValueError(
            "signed_by_outcome: right and wrong must be at least 0 and not both 0,"
            f" got {right} and {wrong}"
        )
    return rollout_advantage(lambda rollouts: outcome_push(rollouts.outcome, right, wrong))
