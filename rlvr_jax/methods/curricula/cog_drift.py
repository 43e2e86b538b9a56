"""Cog-DRIFT: problems that nobody solves are asked in easier forms first, each at its own level.

"Cog-DRIFT: Exploration on Adaptively Reformulated Instances Enables Learning from Hard Reasoning
Problems", https://github.com/dinobby/Cog-DRIFT

    four options < ten options < a gap to fill < the problem itself, all with the same answer
    R    = correct + 0.2 format
    up   if the mean reward of the group is above τ, to the next form that there is, for good
    loss = PPO's clip-higher + 0.01 k3(π ‖ π_ref), A of the group

The threshold is applied to the reward with the bonus: with perfect format τ = 0.5 is an accuracy
above 0.3, and guessing among four options earns 0.45. The variants belong to the prompts
(`Prompt.meta["variants"]`, as `arithmetic_forms` has them); options are shuffled at every visit.
`weights` are those of the task's rewards, accuracy and format. The token mean is ours.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience import experience, shape, shuffled_epochs
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.objectives import (
    group_normalized,
    weighted,
)
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.base import Prompt
from rlvr_jax.tasks.reformulations import reformulated
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Finite, KLCoefficient
from rlvr_jax.types.parts import part


class Climb(NamedTuple):
    """Of each of P prompts.

    Fields:
      level: int32 [P], the form it is asked in.
      window: float32 [P, w], the last mean rewards at that level, the newest last.
      count: int32 [P], how many there are of those.
      visits: int32 [P], steps that asked it.
    """

    level: np.ndarray
    window: np.ndarray
    count: np.ndarray
    visits: np.ndarray


def easiest(available: np.ndarray, window: int) -> Climb:
    """The state before the first visit: every prompt in its easiest form.

    Args:
      available: bool [P, L], which forms a prompt has; the last one, itself, it always has.
      window: rewards that a decision is made of (w).
    """
    prompts = len(available)
    return Climb(
        available.argmax(axis=1).astype(np.int32),
        np.zeros((prompts, window), np.float32),
        np.zeros(prompts, np.int32),
        np.zeros(prompts, np.int32),
    )


def climbed(
    state: Climb,
    available: np.ndarray,
    numbers: Sequence[int],
    rewards: Sequence[float],
    threshold: float,
) -> Climb:
    """The state after visits, in order: up where the mean of the window is above the threshold.

    Up is the next form that there is; the window begins anew there. A prompt never goes down, and
    the last form is the end.

    Args:
      numbers, rewards: of the visits, the mean reward of a group.
      threshold: τ.
    """
    level, window, count, visits = (array.copy() for array in state)
    width = window.shape[1]
    for number, reward in zip(numbers, rewards, strict=True):
        visits[number] += 1
        window[number] = [*window[number, 1:], reward]
        count[number] = min(count[number] + 1, width)
        above = np.flatnonzero(available[number, level[number] + 1 :])
        mean = float(np.mean(window[number, width - count[number] :]))
        if len(above) and mean > threshold + ROUNDING:
            level[number] += 1 + above[0]
            window[number], count[number] = 0, 0
    return Climb(level, window, count, visits)


@part
def climb_formats(formats: Sequence[str], threshold: Finite, window: Count = 1) -> Curriculum:
    """Asks every prompt in the form that it has reached, from the easiest one upwards.

    Forms are those of `Prompt.meta["variants"]` that have these names, and last the prompt itself.
    Options are shuffled at every visit, and the letter of the right one with them. The mean reward
    of a group, bonuses included, moves its prompt.

    Args:
      formats: names of the easier forms, the easiest first.
      threshold: τ, which the mean of the window must exceed.
      window: visits at a level that the mean is over (w), as far as there are so many.
    Reads: Prompt.meta. Metrics: format_level (mean over the prompts), asked_level (over the asks),
      formats_climbed (prompts that went up).
    Raises:
      ValueError: no formats, a threshold that is not finite, a window below 1; when a run begins,
        a task none of whose prompts has a variant.
    """
    if isinstance(formats, str) or not len(formats):
        raise ValueError(f"climb_formats: formats must be at least one name, got {formats!r}")

    def available(setting) -> np.ndarray:
        prompts = setting.task.train
        there = [[name in _variants(p) for name in formats] + [True] for p in prompts]
        return np.array(there, bool)

    def init(setting):
        there = available(setting)
        if not there[:, :-1].any():
            raise ValueError(
                f"climb_formats: prompts must have variants {', '.join(formats)} in"
                f" meta['variants'], got none in task {setting.task.name!r}"
            )
        return easiest(there, window)

    def shown(ask, state, turn):
        if ask.number >= len(state.level) or state.level[ask.number] == len(formats):
            return ask
        name = formats[state.level[ask.number]]
        seed = [turn.setting.seed, zlib.crc32(b"climb_formats"), ask.number]
        random = np.random.default_rng([*seed, int(state.visits[ask.number])])
        return replace(ask, prompt=reformulated(ask.prompt, name, random))

    def propose(asks, state, turn):
        return [shown(ask, state, turn) for ask in asks]

    def observe(state, turn, seen, learned):
        del seen
        numbers, rewards = [], []
        for rows in learned.groups:
            number = learned.asks[rows[0]].number
            rows = rows[learned.decided[rows]]
            if number < len(state.level) and len(rows):
                numbers.append(number)
                rewards.append(float(np.mean(learned.rollouts.reward[rows])))
        after = climbed(state, available(turn.setting), numbers, rewards, threshold)
        told = {
            "format_level": float(after.level.mean()),
            "formats_climbed": float(np.sum(after.level > state.level)),
        }
        if numbers:
            told["asked_level"] = float(state.level[numbers].mean())
        return after, told

    return Curriculum(propose, init, observe, reads=frozenset({"meta"}))


def _variants(prompt: Prompt) -> dict:
    return prompt.meta.get("variants", {})


def cog_drift(
    formats: Sequence[str] = ("four_choice", "ten_choice", "fill_in"),
    threshold: float = 0.5,
    window: int = 1,
    weights: Sequence[float] = (1.0, 0.2),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    kl_coefficient: KLCoefficient = 0.01,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """GRPO on every prompt in the easiest form that it has not yet outgrown.

    Args:
      formats: of the variants, the easiest first.
      threshold: mean reward above which a prompt goes up (τ).
      window: visits that the mean is over (w).
      weights: of the task's rewards: accuracy, format.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low=clip_low,
            clip_high=clip_high,
            advantage=group_normalized(epsilon),
            kl_coefficient=kl_coefficient,
        ),
        experience=experience(
            [shuffled_epochs(), climb_formats(formats, threshold, window)],
            stages=[shape(weighted(weights), rewards=len(weights))],
        ),
    )


METHOD = Method(
    cog_drift,
    "Cog-DRIFT: Exploration on Adaptively Reformulated Instances Enables Learning from Hard"
    " Reasoning Problems",
    "https://github.com/dinobby/Cog-DRIFT",
    changes="curriculum, reward",
    small={"weights": (1.0, 0.5, 0.25)},
    left_out="writing and filtering the variants by another model",
    reports=(
        "problems unsolved before: 10.11 points (Qwen3-4B-Instruct) and 8.64 (Llama); mean of six "
        "benchmarks 4.72 and 3.23 over the second best"
    ),
    traps=(
        "a prompt without variants in `Prompt.meta` is asked as it is; at window 1 one lucky group "
        "moves a prompt up for good; τ counts the format's bonus, so it is an accuracy of 0.3"
    ),
)
