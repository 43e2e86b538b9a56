"""Prompts drawn by how much their answers vary, as measured by ratings and by training itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.diversity import Diversity, distinct_ngrams
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import mixed, of_round, rarest_order
from rlvr_jax.experience.parts import Curriculum, Setting, Turn
from rlvr_jax.tasks import Batches
from rlvr_jax.types.hyperparameters import Count, NonNegative, NonNegativeInt, Unit
from rlvr_jax.types.parts import part

__all__ = [
    "as_they_are",
    "min_max",
    "num_weighted",
    "outcome_variance",
    "promotion",
    "refreshed",
    "variance_promotion",
]

Scale = Callable[[np.ndarray], np.ndarray]


class _State(NamedTuple):
    """Of each prompt: its last score (NaN: none yet), the weight in use, the step of its last
    visit (-1: none)."""

    score: np.ndarray
    weight: np.ndarray
    last: np.ndarray


def outcome_variance(rate: float) -> float:
    """OVS = P (1 - P) of a pass rate."""
    return rate * (1 - rate)


def promotion(
    rate: float, diversity: float, outcome_weight: float, diversity_weight: float
) -> float:
    """VPS = α P (1 - P) + β TDS, the variance promotion score of a prompt."""
    return outcome_weight * outcome_variance(rate) + diversity_weight * diversity


def as_they_are(scores: np.ndarray) -> np.ndarray:
    """Scores as weights, the paper's form."""
    return scores


def min_max(scores: np.ndarray) -> np.ndarray:
    """(s - min) / (max - min + 1e-8), the form of the authors' code: the least gets exactly 0."""
    span = scores.max() - scores.min()
    return (scores - scores.min()) / (span + 1e-8)


def refreshed(weight: np.ndarray, score: np.ndarray, scale: Scale, momentum: float) -> np.ndarray:
    """W' = μ W + (1 - μ) scale(s), [P]; a prompt without a score (NaN) has the others' mean."""
    known = ~np.isnan(score)
    if not known.any():
        return weight
    whole = np.where(known, score, score[known].mean())
    return (momentum * weight + (1 - momentum) * scale(whole)).astype(weight.dtype)


def num_weighted(share: float, prompts: int) -> int:
    """⌊λ B⌋, the prompts of a step that are drawn by weight."""
    return int(share * prompts)


@part
def variance_promotion(
    share: Unit,
    outcome_weight: NonNegative,
    diversity_weight: NonNegative,
    refresh: Count,
    rated: NonNegativeInt,
    rating_samples: Count,
    diversity: Diversity = distinct_ngrams,
    scale: Scale = as_they_are,
    momentum: Unit = 0.0,
) -> Curriculum:
    """Draws ⌊λB⌋ prompts with replacement ∝ W, the other ones from shuffled epochs.

    W is made every `refresh` steps, from the first one on, of the scores
    VPS = α P (1 - P) + β TDS of each prompt's latest answers: those that training drew since, and
    those of `rated` prompts (visited longest ago) that are asked `rating_samples` times for nothing
    else. Drawing is uniform until the first scores are there.

    Args:
      share: λ, in [0, 1].
      outcome_weight, diversity_weight: α and β, at least 0.
      refresh: steps from one W to the next, at least 1.
      rated: prompts that are rated at each, at least 0; 0: training's answers must do.
      rating_samples: answers to each, at least 1.
      diversity: TDS of the answers of a group.
      scale: (VPS [P]) -> weights, `as_they_are` or `min_max`.
      momentum: μ in W' = μ W + (1 - μ) scale(VPS), in [0, 1]; with 1 the weights are frozen.
    Metrics: scored_share (of the prompts), score (mean of those that have one), rated (prompts).
    Raises:
      ValueError: a number out of range.
    """

    def init(setting):
        prompts = len(setting.task.train)
        none = np.full(prompts, np.nan, np.float32), np.zeros(prompts, np.float32)
        return _State(*none, np.full(prompts, -1, np.int32))

    def propose(asks, state, turn):
        del asks
        setting, random = turn.setting, turn.random()
        weighted = num_weighted(share, setting.prompts)
        chances = mixed(state.weight.astype(float), 0.0)
        drawn = random.choice(len(chances), weighted * setting.rounds, p=chances)
        numbers = of_round(drawn, turn, weighted)
        if weighted < setting.prompts:
            order = _order(setting, setting.prompts - weighted)
            passed = order.indices(turn.step, turn.round, setting.rounds)
            numbers = np.concatenate([numbers, passed])
        return [*_ratings(state, turn, random, numbers), *asks_for(turn, numbers)]

    def _ratings(state: _State, turn: Turn, random, numbers) -> list[Ask]:
        if turn.round or turn.step % refresh:
            return []
        order = rarest_order(random, state.last)
        chosen = order[~np.isin(order, numbers)][:rated]
        return [replace(ask, rating=True, samples=rating_samples) for ask in asks_for(turn, chosen)]

    def observe(state, turn, seen, learned):
        del learned
        score, last = state.score.copy(), state.last.copy()
        for visit in visits_of(seen, len(score), undecided=True):
            last[visit.number] = turn.step
        visits = visits_of(seen, len(score))
        for visit in visits:
            rollouts = visit.batch.rollouts
            varied = diversity(rollouts.tokens[visit.rows], rollouts.mask[visit.rows])
            score[visit.number] = promotion(visit.rate, varied, outcome_weight, diversity_weight)
        weight = state.weight
        if turn.step % refresh == 0:
            weight = refreshed(weight, score, scale, momentum)
        known = ~np.isnan(score)
        ratings = [v.batch.asks[v.rows[0]].rating for v in visits]
        told = {"scored_share": float(known.mean()), "rated": float(np.sum(ratings))}
        if known.any():
            told["score"] = float(score[known].mean())
        return _State(score, weight, last), told

    return Curriculum(propose, init, observe)


@functools.lru_cache(maxsize=4)
def _order(setting: Setting, prompts: int) -> Batches:
    """The shuffled pass over a run's prompts, so many a step; it holds caches alone."""
    return Batches(setting.task, prompts, setting.seed)
