"""Rubrics: scores of several criteria as one reward.

Scores [B, K] are in [0, 1], or NaN for a criterion without a score. The mean leaves out such a
criterion. A row without any score has no reward (NaN). A judge or a check computes the scores.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.arguments import check_each
from rlvr_jax.experience.rewards.parts import Shaping, shaping
from rlvr_jax.types import Criterion
from rlvr_jax.types.hyperparameters import Positive
from rlvr_jax.types.parts import part

__all__ = ["by_rubric", "fraction_of_rubric", "vetoed", "weighted_fraction"]

Scores = Float[Array, "B K"]
Rows = Float[Array, "B"]


def scored(points: Scores, rubric: Sequence[Criterion]) -> Scores:
    """Points of the criteria as scores in [0, 1]; NaN where they are outside [0, maximum]."""
    if not rubric or points.shape[1] != len(rubric):
        raise ValueError(
            f"scored: rubric must have a criterion for each of the {points.shape[1]} columns, at"
            f" least one, got {len(rubric)}"
        )
    most = jnp.asarray([criterion.maximum for criterion in rubric], points.dtype)[None]
    return jnp.where((points >= 0) & (points <= most), points / most, jnp.nan)


def weighted_fraction(scores: Scores, weights: Sequence[float]) -> Rows:
    """Σ w s / Σ w over the criteria that have a score; NaN without any."""
    if len(weights) != scores.shape[1] or not len(weights):
        raise ValueError(
            f"weighted_fraction: weights must be {scores.shape[1]} numbers, one per criterion, at"
            f" least one, got {len(weights)}"
        )
    check_each(Positive, "weighted_fraction", **{f"weights[{n}]": w for n, w in enumerate(weights)})
    known = ~jnp.isnan(scores)
    factor = jnp.where(known, jnp.asarray(weights, scores.dtype)[None], 0)
    mass = jnp.sum(factor, axis=1)
    mean = jnp.sum(factor * jnp.where(known, scores, 0), axis=1) / jnp.where(mass > 0, mass, 1)
    return jnp.where(mass > 0, mean, jnp.nan)


def vetoed(reward: Rows, scores: Scores, columns: Sequence[int], least: float) -> Rows:
    """0 where one of some criteria has a score below `least`; NaN vetoes nothing.

    Args:
      reward: reward of each row.
      scores: scores of the criteria, [B, K].
      columns: criteria with a veto.
      least: lowest score without a veto.
    """
    failed = jnp.any(scores[:, list(columns)] < least, axis=1)
    return jnp.where(failed & ~jnp.isnan(reward), 0, reward)


Combine = Callable[[Array, Sequence[Criterion]], Array]
"""(scores [B, K], rubric) -> reward [B]."""


def fraction_of_rubric(scores: Array, rubric: Sequence[Criterion]) -> Array:
    """Σ w s / Σ w; 0 where a criterion of kind "veto" has a score below ½."""
    fraction = weighted_fraction(scores, [criterion.weight for criterion in rubric])
    vetoes = criteria_of_kind(rubric, "veto")
    return vetoed(fraction, scores, vetoes, 0.5) if vetoes else fraction


@part
def by_rubric(rubric: Sequence[Criterion], combine: Combine = fraction_of_rubric) -> Shaping:
    """The reward is the combined score of a rubric; each criterion is also a metric.

    Args:
      rubric: criteria, whose points are the first columns of the task's rewards.
      combine: (scores, rubric) -> reward.
    Metrics: criterion/<name> (mean score), veto/<name> (fraction of rows with a score below ½ for a
      criterion of kind "veto").
    Raises:
      ValueError: no criteria, or two with the same name.
    """
    names = [criterion.name for criterion in rubric]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"by_rubric: rubric must have criteria of different names, got {names}")

    def reward(rollouts):
        scores = scored(rollouts.records["component_rewards"][:, : len(rubric)], rubric)
        parts = {}
        for criterion, own in zip(rubric, scores.T, strict=True):
            parts[f"criterion/{criterion.name}"] = own
            if criterion.kind == "veto":
                low = jnp.where(jnp.isnan(own), jnp.nan, (own < 0.5).astype(own.dtype))
                parts[f"veto/{criterion.name}"] = low
        return combine(scores, rubric), parts

    return shaping(reward, columns=len(rubric))


def criteria_of_kind(rubric: Sequence[Criterion], kind: str) -> list[int]:
    """Numbers of the criteria of a kind, from 0."""
    return [number for number, criterion in enumerate(rubric) if criterion.kind == kind]
