"""Variance-aware sampling: prompts whose outcomes and texts vary are sampled more often.

"MMR1: Enhancing Multimodal Reasoning with Variance-Aware Sampling and Open Resources",
https://github.com/LengSicong/MMR1

    VPS(x) = α P (1 - P) + β TDS, P the pass rate of x, TDS the fraction of distinct 3-grams
    batch  = ⌊λB⌋ prompts sampled with replacement ∝ VPS, the others from a shuffled pass
    loss   = mean_i (1/n_i) Σ_t [max(-A ρ, -A clip(ρ, 1 - ε, 1 + ε)) + 0.01 k3(π ‖ π_ref)]

The expected gradient of a prompt vanishes with the variance of its rewards. Weights α, β and λ
(`outcome_weight`, `diversity_weight`, `fraction`) are the paper's. It rates all prompts with N
responses every T_u = 351 steps (`refresh`), which costs as much as training. In a run, T_u is an
eighth of its steps, so that weights follow the policy. Here the `rated` prompts that were sampled
longest ago are rated. Training responses score the others. A prompt without a score gets the mean
of all scores.

The authors' code differs in four points. It scales scores by `min_max`, which sets the lowest
weight to 0. It uses only the outcome variance (`diversity_weight=0`). N is 8. Its n-grams include
padding.

Left out: ratings of all prompts.
Reports: Qwen2.5-VL-7B: 58.4 % on average over the authors' multimodal maths sets, reached faster
than with uniform sampling.
Traps: With T_u above the steps of the run, prompts are rated once, by the initial policy. A
momentum of 1 freezes the weights. An edit distance in tokens exceeds the pass rate unless its
weight is small.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, experience
from rlvr_jax.experience.curricula.batches import order_of, requests_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.curricula.picks import mixed, of_round, rarest_order
from rlvr_jax.objectives import clipped_objective, rollout_mean_token_mean
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    KLCoefficient,
    NonNegative,
    NonNegativeInt,
    OfRun,
    Unit,
)
from rlvr_jax.types.passing import arguments_of

Diversity = Callable[[np.ndarray, np.ndarray], float]
"""(tokens [N, T], mask [N, T]) -> a number, larger for responses that differ more."""


def distinct_ngrams(tokens: np.ndarray, mask: np.ndarray, n: int = 3) -> float:
    """Distinct n-grams of all responses over their number, in [0, 1]; 0 if there are none."""
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
    """Mean Levenshtein distance of all pairs of responses, in tokens; 0 for a single response."""
    rows = [row[there] for row, there in zip(tokens, mask, strict=True)]
    pairs = list(itertools.combinations(rows, 2))
    return float(np.mean([_levenshtein(*pair) for pair in pairs])) if pairs else 0.0


def _levenshtein(one: np.ndarray, two: np.ndarray) -> int:
    places = np.arange(len(two) + 1)
    row = places
    for number, token in enumerate(one, start=1):
        best = np.concatenate([[number], np.minimum(row[1:] + 1, row[:-1] + (two != token))])
        # An insertion costs 1 more than the previous place: a running minimum of cost - place.
        row = np.minimum.accumulate(best - places) + places
    return int(row[-1])


def promotion(
    rate: float, diversity: float, outcome_weight: float, diversity_weight: float
) -> float:
    """VPS = α P (1 - P) + β TDS, the variance promotion score of a prompt.

    Args:
      rate: fraction of correct responses to the prompt (P).
      diversity: of its responses, such as `distinct_ngrams` (TDS).
      outcome_weight: weight of the outcome variance (α).
      diversity_weight: weight of the diversity (β).
    """
    return outcome_weight * (rate * (1 - rate)) + diversity_weight * diversity


def as_they_are(scores: np.ndarray) -> np.ndarray:
    """The scores, which are the paper's weights."""
    return scores


def min_max(scores: np.ndarray) -> np.ndarray:
    """(s - min) / (max - min + 1e-8), the authors' code: the lowest score gets the weight 0."""
    span = scores.max() - scores.min()
    return (scores - scores.min()) / (span + 1e-8)


def refreshed(
    weight: np.ndarray,
    score: np.ndarray,
    scale: Callable[[np.ndarray], np.ndarray],
    momentum: float,
) -> np.ndarray:
    """W' = μ W + (1 - μ) scale(s), [P]; a prompt without a score (NaN) gets the mean score.

    Args:
      weight: weight of each prompt before, [P] (W).
      score: new score of each prompt, [P]; NaN for a prompt without one (s).
      scale: weights as a function of the scores: `as_they_are` or `min_max`.
      momentum: weight of the old weights, in [0, 1] (μ).
    """
    known = ~np.isnan(score)
    if not known.any():
        return weight
    whole = np.where(known, score, score[known].mean())
    return (momentum * weight + (1 - momentum) * scale(whole)).astype(weight.dtype)


class _State(NamedTuple):
    """Per prompt: its last score (NaN: none), its weight, the step of its last visit (-1: none)."""

    score: np.ndarray
    weight: np.ndarray
    last: np.ndarray


@part
def variance_promotion(
    fraction: Unit,
    outcome_weight: NonNegative,
    diversity_weight: NonNegative,
    refresh: Annotated[Count, "steps between two ratings (T_u)", OfRun("steps", 8)],
    rated: NonNegativeInt,
    rating_samples: Count,
    diversity: Diversity = distinct_ngrams,
    scale: Callable[[np.ndarray], np.ndarray] = as_they_are,
    momentum: Unit = 0.0,
) -> Curriculum:
    """Samples ⌊λB⌋ prompts with replacement ∝ W, and takes the others from shuffled epochs.

    W is computed every `refresh` steps, starting with the first, from the latest score of each
    prompt. Scores come from training responses and from the rated prompts. Sampling is uniform
    until there are scores.

    Args:
      fraction: fraction of the batch that is sampled by weight (λ).
      outcome_weight, diversity_weight: weights of the two terms of the score (α, β).
      rated: prompts that are rated each time; 0: scores only come from training responses. The
        number is ours; the paper rates all.
      rating_samples: responses per rated prompt (N). They are not trained on.
      diversity: of the responses to a prompt (TDS), `distinct_ngrams` or `edit_distance`, which is
        in tokens and requires a smaller β.
      scale: (VPS [P]) -> weights, `as_they_are` or `min_max`.
      momentum: μ in W' = μ W + (1 - μ) scale(VPS); 1 freezes the weights.
    Metrics: scored_fraction (fraction of the prompts with a score), score (mean of the scores),
      rated (prompts), refreshes (computations of W so far), weighted_prompts (prompts of the step
      that were sampled by W).
    """

    def init(setting):
        prompts = len(setting.task.train)
        none = np.full(prompts, np.nan, np.float32), np.zeros(prompts, np.float32)
        return _State(*none, np.full(prompts, -1, np.int32))

    def propose(requests, state, turn):
        setting, random = turn.setting, turn.random()
        weighted = int(fraction * setting.prompts)
        chances = mixed(state.weight.astype(float), 0.0)
        sampled = random.choice(len(chances), weighted * setting.rounds, p=chances)
        numbers = of_round(sampled, turn, weighted)
        if weighted < setting.prompts:
            order = order_of(setting, setting.prompts - weighted)
            passed = order.indices(turn.step, turn.round, setting.rounds)
            numbers = np.concatenate([numbers, passed])
        return [*ratings(state, turn, random, numbers), *requests_for(turn, numbers)]

    def ratings(state, turn, random, numbers):
        if turn.round or turn.step % refresh:
            return []
        order = rarest_order(random, state.last)
        chosen = order[~np.isin(order, numbers)][:rated]
        return [
            replace(request, rating=True, samples=rating_samples)
            for request in requests_for(turn, chosen)
        ]

    def observe(state, turn, seen, learned):
        score, last = state.score.copy(), state.last.copy()
        for visit in visits_of(seen, len(score), undecided=True):
            last[visit.number] = turn.step
        groups = visits_of(seen, len(score))
        for visit in groups:
            rollouts = visit.batch.rollouts
            distinct = diversity(rollouts.tokens[visit.rows], rollouts.mask[visit.rows])
            score[visit.number] = promotion(visit.rate, distinct, outcome_weight, diversity_weight)
        weight = state.weight
        if turn.step % refresh == 0:
            weight = refreshed(weight, score, scale, momentum)
        known = ~np.isnan(score)
        rated_now = sum(visit.batch.requests[visit.rows[0]].rating for visit in groups)
        weighted = int(fraction * turn.setting.prompts) if state.weight.any() else 0
        metrics = {"scored_fraction": float(known.mean()), "rated": float(rated_now)}
        metrics |= {"refreshes": turn.step // refresh + 1.0, "weighted_prompts": float(weighted)}
        if known.any():
            metrics["score"] = float(score[known].mean())
        return _State(score, weight, last), metrics

    return Curriculum(propose, init, observe)


@arguments_of(
    variance_promotion,
    fraction=0.5,
    outcome_weight=0.8,
    diversity_weight=0.2,
    refresh=351,
    rated=64,
    rating_samples=32,
)
def mmr1_vas(
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.2,
    kl_coefficient: KLCoefficient = 0.01,
    **sampling: Any,
) -> Recipe:
    """Applies GRPO to prompts that are sampled by the variance of their responses."""
    return Recipe(
        objective=clipped_objective(
            clip_low,
            clip_high,
            kl_coefficient=kl_coefficient,
            aggregation=rollout_mean_token_mean(),
        ),
        experience=experience(curriculum=variance_promotion(**sampling)),
    )


METHOD = Method(
    mmr1_vas,
    changes="curriculum",
    shown=Shown("brackets", "experience/weighted_prompts", without={"fraction": 0}),
)
