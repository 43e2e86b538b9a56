"""Rubrics: scores of several criteria as one reward.

A table of scores [B, K] is in [0, 1]; NaN is a criterion that nobody could score. It leaves a mean,
and a row without any score has no reward (NaN). Who scores (a judge, a check) is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.objectives.arguments import check_positive
from rlvr_jax.types.criteria import Criterion

__all__ = ["reached_share", "scored", "vetoed", "weighted_share"]

Scores = Float[Array, "B K"]
Rows = Float[Array, "B"]


def scored(points: Scores, rubric: Sequence[Criterion]) -> Scores:
    """Points as scores in [0, 1]; NaN where they are outside of [0, maximum].

    Args:
      points: of each criterion.
      rubric: one criterion a column.
    Raises:
      ValueError: another number of columns, or no criteria.
    """
    if not rubric or points.shape[1] != len(rubric):
        raise ValueError(
            f"scored: rubric must have a criterion for each of the {points.shape[1]} columns, at"
            f" least one, got {len(rubric)}"
        )
    most = jnp.asarray([criterion.maximum for criterion in rubric], points.dtype)[None]
    return jnp.where((points >= 0) & (points <= most), points / most, jnp.nan)


def weighted_share(scores: Scores, weights: Sequence[float]) -> Rows:
    """Σ w s / Σ w over the criteria that have a score; NaN without any.

    Args:
      scores: in [0, 1].
      weights: w, of the criteria.
    Raises:
      ValueError: not one positive weight per criterion.
    """
    if len(weights) != scores.shape[1] or not len(weights):
        raise ValueError(
            f"weighted_share: weights must be {scores.shape[1]} numbers, one per criterion, at"
            f" least one, got {len(weights)}"
        )
    check_positive("weighted_share", **{f"weights[{n}]": w for n, w in enumerate(weights)})
    known = ~jnp.isnan(scores)
    factor = jnp.where(known, jnp.asarray(weights, scores.dtype)[None], 0)
    mass = jnp.sum(factor, axis=1)
    mean = jnp.sum(factor * jnp.where(known, scores, 0), axis=1) / jnp.where(mass > 0, mass, 1)
    return jnp.where(mass > 0, mean, jnp.nan)


def vetoed(reward: Rows, scores: Scores, columns: Sequence[int], least: float) -> Rows:
    """0 where one of some criteria has less than `least`; one without a score vetoes nothing."""
    failed = jnp.any(scores[:, list(columns)] < least, axis=1)
    return jnp.where(failed & ~jnp.isnan(reward), 0, reward)


def reached_share(
    rubrics: Sequence[Iterable[str]],
    supported: Sequence[bool],
    entities: Mapping[str, str | None] | None = None,
    start: str = "E0",
) -> float:
    """Share of the rubrics that are reached from the answer over rubrics that are supported.

    Two entities are linked by a supported rubric that mentions both. A rubric with an entity that
    has no name does not count, nor does one that is not reached.

    Args:
      rubrics: the entities of each.
      supported: whether the evidence shows it.
      entities: names that were found, None for those that were not; None: all have one.
      start: the answer.
    Raises:
      ValueError: no rubrics, or not one verdict per rubric.
    Source: CaRR, https://github.com/THUDM/CaRR.
    """
    if not rubrics or len(rubrics) != len(supported):
        raise ValueError(
            f"reached_share: supported must be one verdict for each of the {len(rubrics)} rubrics,"
            f" at least one, got {len(supported)}"
        )
    sets = [set(mentioned) for mentioned in rubrics]
    lacking = set() if entities is None else {e for e, name in entities.items() if name is None}
    open_ = [
        number
        for number, mentioned in enumerate(sets)
        if supported[number] and not mentioned & lacking
    ]
    reached, counted = {start}, 0
    while new := [number for number in open_ if sets[number] & reached]:
        open_ = [number for number in open_ if number not in new]
        counted += len(new)
        reached = reached.union(*(sets[number] for number in new))
    return counted / len(rubrics)
