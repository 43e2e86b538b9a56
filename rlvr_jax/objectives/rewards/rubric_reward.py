"""The reward of a rubric whose points are rewards of the task."""

from collections.abc import Callable, Sequence
from typing import Annotated

import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.objectives.rewards.parts import Shaping, judged_mean
from rlvr_jax.objectives.rewards.rubrics import (
    Criterion,
    factual_or_share,
    relative_to_best,
    saturated,
    scored,
    vetoed,
    weighted_share,
    with_synergy,
)
from rlvr_jax.objectives.statistics.groups import group_max
from rlvr_jax.types.hyperparameters import NonNegativeInt, Positive, Range, Unit
from rlvr_jax.types.parts import Function, part

__all__ = [
    "all_factual_or_share",
    "anchored",
    "by_rubric",
    "share_of_rubric",
    "sum_of_rubric",
    "with_evidence",
]

Combine = Callable[[Array, Sequence[Criterion]], Array]
"""(scores [B, K], rubric) -> reward [B]."""


def share_of_rubric(scores: Array, rubric: Sequence[Criterion]) -> Array:
    """Σ w s / Σ w; criteria that are vetoes take everything where they fail (a score below ½)."""
    share = weighted_share(scores, [criterion.weight for criterion in rubric])
    vetoes = criteria_of_kind(rubric, "veto")
    return vetoed(share, scores, vetoes, 0.5) if vetoes else share


def sum_of_rubric(scores: Array, rubric: Sequence[Criterion]) -> Array:
    """The sum of the points, in which a criterion without a score is 0; longer rubrics pay more."""
    most = jnp.asarray([criterion.maximum for criterion in rubric], scores.dtype)[None]
    return jnp.sum(jnp.where(jnp.isnan(scores), 0, scores) * most, axis=1)


@part
def all_factual_or_share(least: Unit = 0.5) -> Function:
    """1 if all factual criteria are met, else the weighted share of the criteria that are.

    Args:
      least: score from which on a criterion is met.
    Raises:
      ValueError: least outside [0, 1].
    """

    def all_factual_or_share_of(scores, rubric):
        weights = [criterion.weight for criterion in rubric]
        return factual_or_share(scores, weights, criteria_of_kind(rubric, "factual"), least)

    return all_factual_or_share_of


@part
def anchored(
    saturation: Positive | None = None,
    synergy: Annotated[float, Range(-1, open_low=True)] = 0.0,
    pair: tuple[int, int] = (0, 1),
    power: Positive = 1.0,
    veto_below: Unit = 0.5,
) -> Function:
    """The weighted share, saturated, with synergy and a power, and then vetoed.

    Args:
      saturation: τ of `saturated`; None: scores count as they are.
      synergy, pair: of `with_synergy`, above -1; 0: none.
      power: of the reward; above 1 it stretches the top.
      veto_below: what the score of a criterion of kind "veto" must have, as it was given.
    Raises:
      ValueError: a saturation or power that is not positive, synergy of -1 or less, or veto_below
        outside [0, 1].
    Source: Rubicon, https://arxiv.org/abs/2508.12790, names them; the formulas are ours.
    """

    def anchored_share(scores, rubric):
        counted = scores if saturation is None else saturated(scores, saturation)
        reward = weighted_share(counted, [criterion.weight for criterion in rubric])
        if synergy:
            reward = with_synergy(reward, counted, pair, synergy)
        if power != 1:
            reward = reward**power
        vetoes = criteria_of_kind(rubric, "veto")
        return vetoed(reward, scores, vetoes, veto_below) if vetoes else reward

    return anchored_share


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


@part
def with_evidence(column: int, share: Unit = 0.3, relative: bool = True) -> Shaping:
    """(1 - α) R + α R E: of right responses those with more evidence earn more; wrong ones nothing.

    Args:
      column: of the task's rewards, the share of a rubric that the evidence reaches.
      share: α.
      relative: E is that share over the largest of the group, wrong rows included; else as it is.
    Reads: outcome, group, component_rewards. Metrics: reward/evidence, reward/evidence_of_right.
    Raises:
      ValueError: share outside [0, 1].
    Source: CaRR, https://github.com/THUDM/CaRR.
    """

    def apply(rollouts, state, moment):
        del moment
        outcome, own = rollouts.outcome, rollouts.component_rewards[:, column]
        known = ~jnp.isnan(own)
        best = group_max(jnp.where(known, own, 0), rollouts.group, known)
        counted = relative_to_best(own, best) if relative else own
        of_right = jnp.where(outcome > 0.5, own, jnp.nan)
        metrics = {
            "reward/evidence": judged_mean(own, rollouts),
            "reward/evidence_of_right": judged_mean(of_right, rollouts),
        }
        # A wrong response earns nothing, whatever its evidence: nobody has to know it.
        of_evidence = jnp.where(outcome == 0, 0, outcome * counted)
        return (1 - share) * outcome + share * of_evidence, state, metrics

    reads = frozenset({"component_rewards"})
    return Shaping(apply, reads=reads, columns=column + 1)


def criteria_of_kind(rubric, kind):
    return [number for number, criterion in enumerate(rubric) if criterion.kind == kind]
