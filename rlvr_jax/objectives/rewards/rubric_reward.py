"""The reward of a rubric whose points are rewards of the task."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array

from rlvr_jax.objectives.arguments import check_at_least, check_positive, check_within
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
    vetoes = _of_kind(rubric, "veto")
    return vetoed(share, scores, vetoes, 0.5) if vetoes else share


def sum_of_rubric(scores: Array, rubric: Sequence[Criterion]) -> Array:
    """The sum of the points, in which a criterion without a score is 0; longer rubrics pay more."""
    most = jnp.asarray([criterion.maximum for criterion in rubric], scores.dtype)[None]
    return jnp.sum(jnp.where(jnp.isnan(scores), 0, scores) * most, axis=1)


def all_factual_or_share(least: float = 0.5) -> Combine:
    """1 if all factual criteria are met, else the weighted share of the criteria that are.

    Args:
      least: score from which on a criterion is met.
    Raises:
      ValueError: least outside [0, 1].
    """
    check_within(0, 1, "all_factual_or_share", least=least)

    def all_factual_or_share_of(scores, rubric):
        weights = [criterion.weight for criterion in rubric]
        return factual_or_share(scores, weights, _of_kind(rubric, "factual"), least)

    return all_factual_or_share_of


def anchored(
    saturation: float | None = None,
    synergy: float = 0.0,
    pair: tuple[int, int] = (0, 1),
    power: float = 1.0,
    veto_below: float = 0.5,
) -> Combine:
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
    if saturation is not None:
        check_positive("anchored", saturation=saturation)
    check_positive("anchored", power=power)
    check_within(0, 1, "anchored", veto_below=veto_below)
    check_at_least(-1, "anchored", synergy=synergy)
    if synergy == -1:
        raise ValueError("anchored: synergy must be above -1, got -1")

    def anchored_share(scores, rubric):
        counted = scores if saturation is None else saturated(scores, saturation)
        reward = weighted_share(counted, [criterion.weight for criterion in rubric])
        if synergy:
            reward = with_synergy(reward, counted, pair, synergy)
        if power != 1:
            reward = reward**power
        vetoes = _of_kind(rubric, "veto")
        return vetoed(reward, scores, vetoes, veto_below) if vetoes else reward

    return anchored_share


def by_rubric(
    rubric: Sequence[Criterion], combine: Combine = share_of_rubric, first: int = 0
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
    if first < 0:
        raise ValueError(f"by_rubric: first must be at least 0, got {first}")

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

    label = f"by_rubric({', '.join(names)}, {combine.__name__})"
    needs = frozenset({"component_rewards"})
    return Shaping(apply, label, needs=needs, columns=first + len(rubric))


def with_evidence(column: int, share: float = 0.3, relative: bool = True) -> Shaping:
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
    check_within(0, 1, "with_evidence", share=share)

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

    label = f"with_evidence(column={column}, share={share:g}, relative={relative})"
    needs = frozenset({"component_rewards"})
    return Shaping(apply, label, needs=needs, columns=column + 1)


def _of_kind(rubric, kind):
    return [number for number, criterion in enumerate(rubric) if criterion.kind == kind]
