"""Cog-DRIFT: unsolved problems are shown in easier forms first, each at its own level.

"Cog-DRIFT: Exploration on Adaptively Reformulated Instances Enables Learning from Hard Reasoning
Problems", https://github.com/dinobby/Cog-DRIFT

    levels  four options < ten options < a gap to fill < the problem itself, with the same answer
    R       = correct + 0.2 format
    up      to the next available level, permanently, if the mean reward of the group is above τ
    loss    = PPO's clip-higher + 0.01 k3(π ‖ π_ref), A of the group

The reward at the threshold τ includes the format bonus. With perfect format, τ = 0.5 is an accuracy
above 0.3, and guessing among four options earns 0.45. The variants come with the prompts
(`Prompt.meta["variants"]`, as in `option_sums`). Options are shuffled each time a prompt is
sampled. `weights` are those of the task's rewards, accuracy and format. The token mean is ours.

Left out: another model that writes and filters the variants.
Reports: gains on previously unsolved problems in points: 10.11 (Qwen3-4B-Instruct) and 8.64
(Llama). Mean of six benchmarks: 4.72 and 3.23 points over the second best.
Traps: A prompt without variants in `Prompt.meta` is shown unchanged. With `window` 1, one lucky
group moves a prompt up permanently. A policy that guesses among options climbs by luck.
"""

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.experience import Curriculum, experience, shape, shuffled_epochs, weighted
from rlvr_jax.experience.batch import ROUNDING
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.tasks.derived.reformulations import reformulated
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Count, Epsilon, Finite, KLCoefficient
from rlvr_jax.types.passing import arguments_of


class Climb(NamedTuple):
    """The state of each of P prompts.

    Fields:
      level: int32 [P], the form it is shown in.
      window: float32 [P, w], the last mean rewards at that level, the newest last.
      count: int32 [P], number of mean rewards in the window.
      times_sampled: int32 [P], steps that requested it.
    """

    level: np.ndarray
    window: np.ndarray
    count: np.ndarray
    times_sampled: np.ndarray


@part(reads={"meta"})
def climb_formats(formats: Sequence[str], threshold: Finite, window: Count = 1) -> Curriculum:
    """Shows every prompt in the form that it has reached, from the easiest to the prompt itself.

    The mean reward of a group, bonuses included, decides about the next form.

    Args:
      formats: names in `Prompt.meta["variants"]`, the easiest first.
      threshold: τ, which the mean of the window must exceed.
      window: w, groups at a level that the mean is over, or all of them if there are fewer.
    Metrics: format_level (mean over the prompts), asked_level (mean over the step's prompts),
      formats_climbed (prompts that went up).
    Raises:
      ValueError: no formats; at the start of a run, a task in which no prompt has a variant.
    """
    if isinstance(formats, str) or not len(formats):
        raise ValueError(f"climb_formats: formats must be at least one name, got {formats!r}")

    def available(setting) -> np.ndarray:
        prompts = setting.task.train
        variants = [prompt.meta.get("variants", {}) for prompt in prompts]
        return np.array([[name in own for name in formats] + [True] for own in variants], bool)

    def init(setting):
        there = available(setting)
        if not there[:, :-1].any():
            raise ValueError(
                f"climb_formats: prompts must have variants {', '.join(formats)} in"
                f" meta['variants'], got none in task {setting.task.name!r}"
            )
        return easiest(there, window)

    def shown(request, state, turn):
        if request.number >= len(state.level) or state.level[request.number] == len(formats):
            return request
        name = formats[state.level[request.number]]
        seed = [turn.setting.seed, zlib.crc32(b"climb_formats"), request.number]
        random = np.random.default_rng([*seed, int(state.times_sampled[request.number])])
        return replace(request, prompt=reformulated(request.prompt, name, random))

    def propose(requests, state, turn):
        return [shown(request, state, turn) for request in requests]

    def observe(state, turn, seen, learned):
        numbers, rewards = [], []
        for rows in learned.groups:
            number = learned.requests[rows[0]].number
            rows = rows[learned.decided[rows]]
            if number < len(state.level) and len(rows):
                numbers.append(number)
                rewards.append(float(np.mean(learned.rollouts.reward[rows])))
        after = climbed(state, available(turn.setting), numbers, rewards, threshold)
        metrics = {
            "format_level": float(after.level.mean()),
            "formats_climbed": float(np.sum(after.level > state.level)),
        }
        if numbers:
            metrics["asked_level"] = float(state.level[numbers].mean())
        return after, metrics

    return Curriculum(propose, init, observe)


def easiest(available: np.ndarray, window: int) -> Climb:
    """The initial state: every prompt in its easiest form.

    Args:
      available: bool [P, L], the forms of each prompt; the last form is the prompt itself.
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
    """The state after groups, in order: up if the mean of the window is above the threshold.

    Up is the next available form, and its window starts empty. A prompt never goes down.

    Args:
      state: of the P prompts.
      available: forms that each prompt has, from the easiest to the prompt itself, bool [P, L].
      numbers, rewards: prompt and mean reward of each group, in the order of the groups.
      threshold: mean reward above which a prompt goes up (τ).
    """
    level, window, count, times_sampled = (array.copy() for array in state)
    width = window.shape[1]
    for number, reward in zip(numbers, rewards, strict=True):
        times_sampled[number] += 1
        window[number] = [*window[number, 1:], reward]
        count[number] = min(count[number] + 1, width)
        above = np.flatnonzero(available[number, level[number] + 1 :])
        mean = float(np.mean(window[number, width - count[number] :]))
        if len(above) and mean > threshold + ROUNDING:
            level[number] += 1 + above[0]
            window[number], count[number] = 0, 0
    return Climb(level, window, count, times_sampled)


@arguments_of(
    climb_formats, formats=("four_choice", "ten_choice", "fill_in"), threshold=0.5, window=1
)
def cog_drift(
    weights: Sequence[float] = (1.0, 0.2),
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    kl_coefficient: KLCoefficient = 0.01,
    epsilon: Epsilon = 1e-6,
    **forms: Any,
) -> Recipe:
    """Applies GRPO to every prompt in the form that it has reached.

    Args:
      weights: weights of the task's rewards: accuracy, format.
    """
    return Recipe(
        objective=clipped_objective(
            clip_low, clip_high, epsilon=epsilon, kl_coefficient=kl_coefficient
        ),
        experience=experience(
            [shuffled_epochs(), climb_formats(**forms)],
            stages=[shape(weighted(weights), rewards=len(weights))],
        ),
    )


METHOD = Method(
    cog_drift,
    changes="curriculum, reward",
    small={"weights": (1.0, 0.5, 0.25)},
    # The base model guesses among options. It fills four times as many gaps as it answers prompts.
    shown=Shown(
        "option_sums",
        "experience/formats_climbed",
        without={"threshold": 10},
        hyperparameters={"formats": "fill_in"},
        within=1,
    ),
)
