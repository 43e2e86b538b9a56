"""RLVE: every environment grows harder as the policy learns it.

"RLVE: Scaling Up Reinforcement Learning for Language Models with Adaptive Verifiable
Environments", https://github.com/Zhiyuan-Zeng/RLVE

    draw    an environment e at random, a level of max(0, h_e - w + 1) … h_e at random, a prompt
    count   the answers at level h_e, of all groups, dropped ones included
    raise   with P · n answers: h_e rises by one if at least τ of them were right; count anew
    R_i     = outcome^β, of graded answers; 0 and 1 stay
    loss    = Σ w_t max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i, over mixed groups
    w_t     = min(exp(old_logp - behaviour_logp), C), truncated importance sampling

Environments are the kinds of the task's prompts and levels their `meta["level"]`; h stays at the
last level that the task has. One draw in w is at level h, so a decision takes about w · P draws of
an environment. The authors' reward of malformed answers is -1; here they are wrong, 0, as the task
says. The cap C is verl's.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience, refill, shape, uniform
from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.parts import Curriculum, Setting
from rlvr_jax.objectives import (
    group_normalized,
    truncate_importance,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import (
    ClipHigh,
    ClipLow,
    Count,
    Epsilon,
    NonNegativeInt,
    Positive,
    Unit,
)
from rlvr_jax.types.parts import Function, part

RIGHT = 1 - 1e-6
"""An outcome from here on is right."""


class Levels(NamedTuple):
    """Of each of E environments.

    Fields:
      highest: int32 [E], upper end h of the window of levels, from 0.
      right: int32 [E], right answers at level h since it was set.
      answers: int32 [E], all answers at level h since then.
    """

    highest: np.ndarray
    right: np.ndarray
    answers: np.ndarray

    @property
    def accuracy(self) -> np.ndarray:
        """Share of right answers at level h, [E]; 0 of none."""
        return self.right / np.maximum(self.answers, 1)


def lowest(highest: np.ndarray, window: int) -> np.ndarray:
    """Lower end of the window: max(0, h - w + 1)."""
    return np.maximum(0, highest - window + 1)


def counted(
    levels: Levels, environment: np.ndarray, level: np.ndarray, right: np.ndarray
) -> Levels:
    """The levels with answers counted: those at level h, the others say nothing.

    Args:
      environment, level: int [n], of each answer.
      right: bool [n].
    """
    there = level == levels.highest[environment]
    number = len(levels.highest)
    right = np.bincount(environment[there & right], minlength=number)
    answers = np.bincount(environment[there], minlength=number)
    return levels._replace(
        right=levels.right + right.astype(np.int32),
        answers=levels.answers + answers.astype(np.int32),
    )


def raised(levels: Levels, least: int, threshold: float, last: np.ndarray) -> Levels:
    """The levels after their update: h rises by one where enough answers at h are right.

    Where there are `least` answers, both counts begin anew, whether h rises (accuracy ≥ τ) or not.

    Args:
      least: answers that a decision needs.
      threshold: τ.
      last: int [E], the last level of each environment; h stays there.
    """
    ready = levels.answers >= least
    up = ready & (levels.accuracy >= threshold)
    return Levels(
        np.minimum(levels.highest + up, last).astype(np.int32),
        np.where(ready, 0, levels.right).astype(np.int32),
        np.where(ready, 0, levels.answers).astype(np.int32),
    )


@part
def adaptive_levels(
    window: Count, prompts: Count, threshold: Unit, start: NonNegativeInt = 0
) -> Curriculum:
    """Draws prompts of levels that the policy is about to learn, and goes on when it has.

    Environments are the kinds of the task's prompts, their levels the values of `meta["level"]`
    that the kind has, in order, from 0. A draw takes an environment at random, a level of its
    window max(0, h - w + 1) … h, and a prompt of that level that the step has not had, as long as
    there is one. After a step the answers at level h are counted, those to groups that a filter
    drops included; with n · `prompts` of them h rises if at least τ were right.

    Args:
      window: w, levels that are drawn from.
      prompts: whose answers a decision needs, n of each.
      threshold: τ, in [0, 1].
      start: h at first.
    Metrics: level/<kind> (h), level_accuracy/<kind> (at h, so far), levels_raised (kinds).
    Raises:
      ValueError: a window or number below 1, τ outside [0, 1], a negative start; when a run begins,
        a prompt without a level, or a start behind the last level.
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

    def propose(asks, state, turn):
        del asks
        atlas, random = _atlas(turn.setting), turn.random()
        low = lowest(state.highest, window)
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
        return asks_for(turn, order[turn.round * turn.setting.prompts :])

    def observe(state, turn, seen, learned):
        del learned
        atlas = _atlas(turn.setting)
        for visit in visits_of(seen, len(atlas.kind)):
            right = visit.outcomes >= RIGHT
            cell = (np.full(len(right), of[visit.number]) for of in (atlas.kind, atlas.level))
            state = counted(state, *cell, right)
        accuracy = state.accuracy
        after = raised(state, prompts * turn.setting.drawn_samples, threshold, atlas.last)
        told = {"levels_raised": float((after.highest > state.highest).sum())}
        for number, kind in enumerate(atlas.kinds):
            told[f"level/{kind}"] = float(after.highest[number])
            told[f"level_accuracy/{kind}"] = float(accuracy[number])
        return after, told

    return Curriculum(propose, init, observe, reads=frozenset({"meta"}))


class _Atlas(NamedTuple):
    """Where the prompts of a task stand: kinds in order, each prompt's kind and level (as places),
    the last level of each kind, and the prompts of each (kind, level)."""

    kinds: list[str]
    kind: np.ndarray
    level: np.ndarray
    last: np.ndarray
    members: dict[tuple[int, int], np.ndarray]


@functools.lru_cache(maxsize=4)
def _atlas(setting: Setting) -> _Atlas:
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
    """outcome^β: of graded answers only the good ones earn much; 0 and 1 stay.

    Args:
      exponent: β, positive.
    """

    def reward(rollouts):
        return rollouts.outcome**exponent

    return reward


def rlve(
    window: int = 4,
    min_prompts: int = 8,
    threshold: float = 0.9,
    start: int = 0,
    exponent: float = 5.0,
    max_rounds: int = 3,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    cap: float = 2.0,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clip-higher on groups of mixed outcomes, of prompts whose level follows the policy.

    Args:
      window: levels that are drawn from (w).
      min_prompts: whose answers a decision needs (P).
      threshold: share of right answers that raises the level (τ).
      start: the level at first (h).
      exponent: of graded outcomes (β).
      max_rounds: batches that are drawn at most to fill one update: 384 prompts for 128.
      cap: largest weight of a token (C).
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            transforms=[truncate_importance(cap)],
        ),
        experience=experience(
            curriculum=adaptive_levels(window, min_prompts, threshold, start),
            stages=[refill(uniform, max_rounds), shape(powered_outcome(exponent))],
        ),
    )


METHOD = Method(
    rlve,
    "RLVE: Scaling Up Reinforcement Learning for Language Models with Adaptive Verifiable"
    " Environments",
    "https://github.com/Zhiyuan-Zeng/RLVE",
    changes="curriculum, selection, reward, weight",
    left_out="the 400 environments, the reward of -1 for malformed answers and partial rollouts",
    reports=(
        "from ProRL-1.5B-v2: 3.37 points over six benchmarks with 400 environments; going on with "
        "the old RL 0.49 at thrice the compute"
    ),
    traps=(
        "levels never fall, so a verifier that passes all drives them to the top; only answers at "
        "the highest level count; a hard environment keeps its equal share for ever"
    ),
)
