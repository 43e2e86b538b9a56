"""Which groups of a batch are trained on, decided from raw outcomes."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.objectives.statistics.groups import group_count, group_spread
from rlvr_jax.types import Rollouts, replace

__all__ = ["Selection", "drop_rollouts", "mixed_outcomes"]


@dataclass(frozen=True)
class Selection:
    """A group filter with resampling.

    Fields:
      keep: (outcome [B], group [B]) -> bool [B], equal within a group.
      max_rounds: batches that are drawn at most to fill one update with kept groups.
    """

    keep: Callable[[Array, Array], Array]
    max_rounds: int

    def __post_init__(self):
        if not self.max_rounds >= 1:
            raise ValueError(f"Selection: max_rounds must be at least 1, got {self.max_rounds}")


def mixed_outcomes(outcome: Float[Array, "B"], group: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Keeps the groups whose outcomes are not all equal, and groups of one.

    Outcomes closer than 1e-6 count as equal: sums that differ by rounding are no signal.

    Args:
      outcome: what the verifier said, not the shaped reward.
      group: id of the group of each rollout.
    Source: Yu et al. 2025, https://arxiv.org/abs/2503.14476 (dynamic sampling).
    """
    return (group_spread(outcome, group) > 1e-6) | (group_count(group) == 1)


def drop_rollouts(rollouts: Rollouts, keep: Bool[Array, "B"]) -> Rollouts:
    """Takes rows out of the loss and its denominators by clearing their mask."""
    return replace(rollouts, mask=rollouts.mask & keep[:, None])
