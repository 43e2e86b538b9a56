"""RLVE: the level of every environment rises as the policy learns it.

"RLVE: Scaling Up Reinforcement Learning for Language Models with Adaptive Verifiable Environments",
https://github.com/Zhiyuan-Zeng/RLVE

    sample  an environment e at random, a level of max(0, h_e - w + 1) … h_e at random, a prompt
    count   the responses at level h_e, of all groups, including dropped ones
    raise   after P · n responses: h_e rises by 1 if at least τ of them are correct; then restart
    R_i     = outcome^β, for graded outcomes; 0 and 1 do not change
    loss    = Σ w_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over mixed groups
    w_t     = min(exp(old_logp - behaviour_logp), C), truncated importance sampling

Environments are the kinds of the task's prompts, and levels are their `meta["level"]`. h stays at
the last level of the task. One sample in w (`window`) has level h, so a decision requires about w ·
P samples of an environment. τ is `threshold`, β `exponent`. The cap C is verl's.

Left out: the 400 environments; the reward of -1 for malformed responses, which here have the task's
reward; partial rollouts.
Reports: from ProRL-1.5B-v2: 3.37 points over six benchmarks with 400 environments. Continuing the
old RL: 0.49 points with 3 times the compute.
Traps: Levels never fall, so a verifier that accepts everything raises them to the top. Only
responses at the highest level count. The fraction of a hard environment does not change.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, RunInfo, experience, refill, shape, uniform
from rlvr_jax.experience.curricula.batches import requests_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.objectives import clipped_objective, truncate_importance
from rlvr_jax.types import Function, Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import (
    Bound,
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegativeInt,
    Positive,
    Unit,
)
from rlvr_jax.types.passing import arguments_of

CORRECT = 1 - 1e-6
"""Outcomes from this value on are correct."""


class Levels(NamedTuple):
    """The level of each of E environments.

    Fields:
      highest: int32 [E], upper end h of the window of levels, from 0.
      correct: int32 [E], correct responses at level h since h was set.
      answers: int32 [E], all responses at level h since then.
    """

    highest: np.ndarray
    correct: np.ndarray
    answers: np.ndarray

    @property
    def accuracy(self) -> np.ndarray:
        """Fraction of correct responses at level h, [E]; 0 without responses."""
        return self.correct / np.maximum(self.answers, 1)


@part(reads={"meta"})
def adaptive_levels(
    window: Count, prompts: Count, threshold: Unit, start: NonNegativeInt = 0
) -> Curriculum:
    """Samples prompts of levels that the policy is about to learn, and raises the levels.

    An environment is a kind of prompt. Its levels are the values of `meta["level"]`, in order,
    from 0. Each sample takes a random environment and a random level of its window. The prompt of
    that level is new to the step if there is one. Responses of dropped groups also count.

    Args:
      window: levels that are sampled from (w).
      prompts: P, prompts whose responses a decision needs.
      threshold: fraction of correct responses that raises the level (τ).
      start: the first level (h).
    Metrics: level/<kind> (level h of the environment), level_accuracy/<kind> (accuracy at h),
      levels_raised (kinds).
    Raises:
      ValueError: at the start of a run, a prompt without a level, or `start` after the last level.
    """

    def init(setting):
        atlas = _atlas(setting)
        if start > atlas.last.min():
            kind = atlas.kinds[int(atlas.last.argmin())]
            raise ValueError(
                f"adaptive_levels: start must be at most {atlas.last.min()}, the last level of kind"
                f" {kind!r}, got {start}"
            )
        number = len(atlas.kinds)
        none = np.zeros(number, np.int32)
        return Levels(np.full(number, start, np.int32), none, none)

    def propose(requests, state, turn):
        atlas, random = _atlas(turn.setting), turn.random()
        low = np.maximum(0, state.highest - window + 1)
        queues: dict[tuple[int, int], np.ndarray] = {}
        taken: dict[tuple[int, int], int] = {}
        order = []
        for _ in range((turn.round + 1) * turn.setting.prompts):
            kind = int(random.integers(len(atlas.kinds)))
            cell = kind, int(random.integers(low[kind], state.highest[kind] + 1))
            if cell not in queues:
                queues[cell] = random.permutation(atlas.members[cell])
            place = taken[cell] = taken.get(cell, -1) + 1
            order.append(queues[cell][place % len(queues[cell])])
        return requests_for(turn, order[turn.round * turn.setting.prompts :])

    def observe(state, turn, seen, learned):
        atlas = _atlas(turn.setting)
        for visit in visits_of(seen, len(atlas.kind)):
            correct = visit.outcomes >= CORRECT
            cell = (np.full(len(correct), of[visit.number]) for of in (atlas.kind, atlas.level))
            state = counted(state, *cell, correct)
        accuracy = state.accuracy
        after = raised(state, prompts * turn.setting.initial_samples, threshold, atlas.last)
        metrics = {"levels_raised": float((after.highest > state.highest).sum())}
        for number, kind in enumerate(atlas.kinds):
            metrics[f"level/{kind}"] = float(after.highest[number])
            metrics[f"level_accuracy/{kind}"] = float(accuracy[number])
        return after, metrics

    return Curriculum(propose, init, observe)


def counted(
    levels: Levels, environment: np.ndarray, level: np.ndarray, correct: np.ndarray
) -> Levels:
    """The levels after counting n responses; those at other levels than h do not count.

    Args:
      levels: before the count.
      environment: environment of each response, int [n].
      level: level of the prompt of each response, int [n].
      correct: whether the response is correct, bool [n].
    """
    there = level == levels.highest[environment]
    number = len(levels.highest)
    num_correct = np.bincount(environment[there & correct], minlength=number)
    answers = np.bincount(environment[there], minlength=number)
    return levels._replace(
        correct=levels.correct + num_correct.astype(np.int32),
        answers=levels.answers + answers.astype(np.int32),
    )


def raised(levels: Levels, least: int, threshold: float, last: np.ndarray) -> Levels:
    """The levels after a decision: h rises by 1 where enough responses at h are correct.

    With at least `least` responses, both counts restart, whether h rises (accuracy ≥ τ) or not. The
    limit of h is the last level of its environment (`last`, int [E]).

    Args:
      levels: with the counts since the last decision.
      least: responses at h that a decision requires.
      threshold: accuracy at h from which on h rises (τ).
      last: highest level of each environment, int [E], which limits h.
    """
    ready = levels.answers >= least
    up = ready & (levels.accuracy >= threshold)
    return Levels(
        np.minimum(levels.highest + up, last).astype(np.int32),
        np.where(ready, 0, levels.correct).astype(np.int32),
        np.where(ready, 0, levels.answers).astype(np.int32),
    )


class _Atlas(NamedTuple):
    """Positions of a task's prompts: the kinds in order, kind and level of each prompt (as
    positions), the last level of each kind, and the prompts of each (kind, level).
    """

    kinds: list[str]
    kind: np.ndarray
    level: np.ndarray
    last: np.ndarray
    members: dict[tuple[int, int], np.ndarray]


@functools.lru_cache(maxsize=4)
def _atlas(setting: RunInfo) -> _Atlas:
    prompts = setting.task.train
    for prompt in prompts:
        if "level" not in prompt.meta:
            raise ValueError(
                'adaptive_levels: every train prompt must have meta["level"], got'
                f" {dict(prompt.meta)} for {prompt.text[:80]!r}"
            )
    kinds = sorted({prompt.kind for prompt in prompts})
    values = {k: sorted({p.meta["level"] for p in prompts if p.kind == k}) for k in kinds}
    kind = np.array([kinds.index(prompt.kind) for prompt in prompts])
    level = np.array([values[prompt.kind].index(prompt.meta["level"]) for prompt in prompts])
    members = {
        (number, place): np.flatnonzero((kind == number) & (level == place))
        for number, name in enumerate(kinds)
        for place in range(len(values[name]))
    }
    last = np.array([len(values[name]) - 1 for name in kinds], np.int32)
    return _Atlas(kinds, kind, level, last, members)


@part
def powered_outcome(exponent: Positive) -> Function:
    """outcome^β: of graded outcomes only the high ones earn much; 0 and 1 do not change."""
    return lambda rollouts: rollouts.outcome**exponent


@arguments_of(adaptive_levels, "window", "threshold", "start", window=4, threshold=0.9)
def rlve(
    min_prompts: Count = 8,
    exponent: Positive = 5.0,
    max_rounds: Count = 3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    cap: Bound = 2.0,
    epsilon: Epsilon = 1e-6,
    **levels: Any,
) -> Recipe:
    """Applies clip-higher to groups of mixed outcomes, with prompts whose level follows the policy.

    Args:
      min_prompts: prompts whose responses a decision needs (P).
      exponent: exponent of graded outcomes (β).
      max_rounds: maximum number of batches to fill one update: 384 prompts for 128.
      cap: largest weight of a token (C).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, transforms=[truncate_importance(cap)]
        ),
        experience=experience(
            curriculum=adaptive_levels(prompts=min_prompts, **levels),
            stages=[refill(uniform, max_rounds), shape(powered_outcome(exponent))],
        ),
    )


METHOD = Method(
    rlve,
    changes="curriculum, selection, reward, weight",
    # The base model solves a third of the easy prompts of the first level.
    shown=Shown("brackets", "experience/levels_raised", hyperparameters={"threshold": 0.3}),
)
