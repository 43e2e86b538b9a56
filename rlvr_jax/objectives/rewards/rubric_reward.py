"""The reward of a rubric whose points are rewards of the task."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.objectives.rewards.rubrics import scored, vetoed, weighted_share
from rlvr_jax.types import Criterion
from rlvr_jax.types.hyperparameters import NonNegativeInt
from rlvr_jax.types.parts import part

__all__ = ["by_rubric", "share_of_rubric"]

Combine = Callable[[Array, Sequence[Criterion]], Array]
"""(scores [B, K], rubric) -> reward [B]."""


def share_of_rubric(scores: Array, rubric: Sequence[Criterion]) -> Array:
    """Σ w s / Σ w; criteria that are vetoes take everything where they fail (a score below ½)."""
    share = weighted_share(scores, [criterion.weight for criterion in rubric])
    vetoes = criteria_of_kind(rubric, "veto")
    return vetoed(share, scores, vetoes, 0.5) if vetoes else share


@part
def by_rubric(
    rubric: Sequence[Criterion], combine: Combine = share_of_rubric, first: NonNegativeInt = 0
) -> Shaping:
    """The combined scores of a rubric; each criterion has a curve of its own.

    Args:
      rubric: its criteria, whose points are columns of the task's rewards.
      combine: (scores, rubric) -> reward.
      first: column of the first criterion.
    Reads: component_rewards. Metrics: criterion/<name>, the mean score, and veto/<name>, the share
      of rows that a criterion of kind "veto" scores below ½.
    Raises:
      ValueError: no criteria, two of one name, or a negative column.
    """
    names = [criterion.name for criterion in rubric]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"by_rubric: rubric must have criteria of different names, got {names}")

    def apply(rollouts, state, moment):
        del moment
        points = rollouts.component_rewards[:, first : first + len(rubric)]
        scores = scored(points, rubric)
        metrics = {}
        for number, criterion in enumerate(rubric):
            own = scores[:, number]
            metrics[f"criterion/{criterion.name}"] = judged_mean(own, rollouts)
            if criterion.kind == "veto":
                low = jnp.where(jnp.isnan(own), jnp.nan, (own < 0.5).astype(own.dtype))
                metrics[f"veto/{criterion.name}"] = judged_mean(low, rollouts)
        return combine(scores, rubric), state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=first + len(rubric))


def criteria_of_kind(rubric, kind):
    return [number for number, criterion in enumerate(rubric) if criterion.kind == kind]
