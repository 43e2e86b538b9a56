"""Rubrics: scores of several criteria as one reward.

A table of scores [B, K] is in [0, 1]; NaN is a criterion that nobody could score. It leaves a mean,
and a row without any score has no reward (NaN). Who scores (a judge, a check) is not known here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from rlvr_jax.experience.rewards.parts import Shaping, judged_mean
from rlvr_jax.types import Criterion
from rlvr_jax.types.hyperparameters import NonNegativeInt, Positive
from rlvr_jax.types.parts import check_each, part

__all__ = ["by_rubric", "reached_share", "scored", "share_of_rubric", "vetoed", "weighted_share"]

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
    check_each(Positive, "weighted_share", **{f"weights[{n}]": w for n, w in enumerate(weights)})
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
