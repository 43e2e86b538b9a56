"""Variance-aware sampling: prompts whose answers vary are drawn more often.

"MMR1: Enhancing Multimodal Reasoning with Variance-Aware Sampling and Open Resources",
https://github.com/LengSicong/MMR1

    VPS(x) = α P (1 - P) + β TDS, P the pass rate of x, TDS the share of distinct 3-grams
    batch  = ⌊λB⌋ prompts drawn with replacement ∝ VPS, the others from a shuffled pass
    loss   = mean_i (1/n_i) Σ_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + 0.01 k3(π ‖ π_ref)]

The expected gradient of a prompt vanishes with the variance of its rewards. The paper rates all
prompts every T_u steps with N answers; that is as dear as training, so here `rated` of them are
(those not visited for longest), and training's own answers score the others. A prompt without a
score yet has the mean of all.

The weights are the paper's. The authors' code scales scores by `min_max`, which gives the least one
exactly 0, has the outcome variance alone (`diversity_weight=0`), N = 8 and counts n-grams of
padding, too; here only tokens of the answers count.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience
from rlvr_jax.experience.asks import Ask
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import mixed, of_round, rarest_order
from rlvr_jax.experience.parts import Curriculum, Setting, Turn
from rlvr_jax.objectives import (
    rollout_mean_token_mean,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.batches import Batches
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    KLCoefficient,
    NonNegative,
    NonNegativeInt,
    Unit,
)
from rlvr_jax.types.parts import part

Diversity = Callable[[np.ndarray, np.ndarray], float]
"""(tokens [N, T], mask [N, T]) -> a number, larger for answers that differ more."""


def distinct_ngrams(tokens: np.ndarray, mask: np.ndarray, n: int = 3) -> float:
    """Different n-grams of all answers over their number, in [0, 1]; 0 where there are none.

    Args:
      tokens: int [N, T].
      mask: bool [N, T]; what is off it is skipped.
      n: tokens of an n-gram.
    """
    grams = [
        np.lib.stride_tricks.sliding_window_view(row[there], n)
        for row, there in zip(tokens, mask, strict=True)
        if there.sum() >= n
    ]
    if not grams:
        return 0.0
    every = np.concatenate(grams)
    return len(np.unique(every, axis=0)) / len(every)


def edit_distance(tokens: np.ndarray, mask: np.ndarray) -> float:
    """Mean Levenshtein distance of all pairs of answers, in tokens; 0 of a single answer.

    Args:
      tokens: int [N, T].
      mask: bool [N, T]; what is off it is skipped.
    """
    rows = [row[there] for row, there in zip(tokens, mask, strict=True)]
    pairs = list(itertools.combinations(rows, 2))
    return float(np.mean([_levenshtein(*pair) for pair in pairs])) if pairs else 0.0


def _levenshtein(one: np.ndarray, two: np.ndarray) -> int:
    places = np.arange(len(two) + 1)
    row = places
    for number, token in enumerate(one, start=1):
        kept = np.minimum(row[1:] + 1, row[:-1] + (two != token))
        best = np.concatenate([[number], kept])
        # An insertion costs one more than the place before: a running minimum of cost - place.
        row = np.minimum.accumulate(best - places) + places
    return int(row[-1])


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


def mmr1_vas(
    share: float = 0.5,
    outcome_weight: float = 0.8,
    diversity_weight: float = 0.2,
    refresh: int = 351,
    rated: int = 64,
    rating_samples: int = 32,
    diversity: Diversity = distinct_ngrams,
    scale: Callable[[np.ndarray], np.ndarray] = as_they_are,
    momentum: float = 0.0,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    kl_coefficient: KLCoefficient = 0.01,
) -> Recipe:
    """GRPO on prompts that are drawn by the variance of their answers.

    Args:
      share: of the batch that is drawn by weight (λ).
      outcome_weight, diversity_weight: of the score's two terms (α, β).
      refresh: steps between two ratings (T_u).
      rated: prompts of each; ours, where the paper rates all.
      rating_samples: answers to each of them (N).
      diversity: of the answers to a prompt (TDS), `distinct_ngrams` or `edit_distance`, which is in
        tokens and needs a smaller β.
      scale: of scores, `as_they_are` or `min_max`.
      momentum: of the weights (μ).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            kl_coefficient=kl_coefficient,
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(
            curriculum=variance_promotion(
                share,
                outcome_weight,
                diversity_weight,
                refresh,
                rated,
                rating_samples,
                diversity,
                scale,
                momentum,
            )
        ),
    )


METHOD = Method(
    mmr1_vas,
    "MMR1: Enhancing Multimodal Reasoning with Variance-Aware Sampling and Open Resources",
    "https://github.com/LengSicong/MMR1",
    changes="curriculum",
    left_out="ratings of all prompts",
    reports=(
        "on Qwen2.5-VL-7B: 58.4 on average over their multimodal maths sets; faster than uniform "
        "draws"
    ),
    traps=(
        "the authors' code scores pass rates alone with 8 answers and gives the worst prompt "
        "weight 0; momentum of 1 freezes weights; an edit distance in tokens drowns the pass rate "
        "unless its weight is small"
    ),
)
