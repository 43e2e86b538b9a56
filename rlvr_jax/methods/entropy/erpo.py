"""ERPO: prompts whose answers are all right are asked at a higher temperature, until one is wrong.

"Explore Residual Prompts in Policy Optimization", https://arxiv.org/abs/2511.04800

    T    = min(T₀ + κ m, T_max), m the visits in a row in which all answers were right
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

A group of equal outcomes teaches nothing; late in training most groups are all right. Heat makes
them err again. m is kept by prompt and read off the outcomes, not the shaped reward. Old log-probs
are those at T, so ρ is exact. All-wrong prompts stay at T₀.

A reconstruction from the abstract and the reviews: the schedule, κ, T_max and the clip are ours
(above 1.3 small models lose the format). So is the form of `reactivate`, which the reviews mention:
the group's mean and std are taken with one virtual reward of 0, so that an all-right group is
pushed up a little; off by default.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import experience, shuffled_epochs
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.stages.choices.groups import ALIKE
from rlvr_jax.objectives.advantages.group_relative import group_normalized, relative_to
from rlvr_jax.objectives.arguments import check_at_least
from rlvr_jax.objectives.compositions import clipped_objective
from rlvr_jax.objectives.statistics.groups import mean_with_virtual, std_with_virtual
from rlvr_jax.types import Method, Recipe
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegative, Positive
from rlvr_jax.types.parts import part


def heat(streak: np.ndarray, base: float, rise: float, highest: float) -> np.ndarray:
    """min(T₀ + κ m, T_max), m the all-right visits in a row."""
    return np.minimum(base + rise * np.asarray(streak), highest)


def streaks(streak: np.ndarray, numbers: np.ndarray, right: np.ndarray) -> np.ndarray:
    """All-right visits in a row, [P], after visits: one more, or 0 after a wrong answer.

    Args:
      numbers: prompts that were visited, in order.
      right: bool, whether all answers of the visit were right.
    """
    streak = streak.copy()
    for number, every in zip(numbers, right, strict=True):
        streak[number] = streak[number] + 1 if every else 0
    return streak


@part
def heat_solved(base: Positive, rise: NonNegative, highest: float) -> Curriculum:
    """Asks prompts hotter that were all right at their last visits, so that they go wrong again.

    T = min(T₀ + κ m, T_max), m the visits in a row whose answers were all right; it changes the
    asks of the curricula before it. Old log-probs are of the policy at T (`Rollouts.temperature`),
    so the ratio is exact.

    Args:
      base: T₀, of every other prompt, in the place of the run's temperature.
      rise: κ, per visit.
      highest: T_max.
    Metrics: heated_share (of the step's prompts), ask_temperature (their mean), in the step that
      they were asked.
    Raises:
      ValueError: base not positive, a negative rise, or T_max below T₀.
    """
    check_at_least(base, "heat_solved", highest=highest)

    def init(setting):
        return np.zeros(len(setting.task.train), np.int32)

    def propose(asks, state, turn):
        del turn
        return [
            ask
            if ask.rating or ask.number >= len(state)
            else replace(ask, temperature=float(heat(state[ask.number], base, rise, highest)))
            for ask in asks
        ]

    def observe(state, turn, seen, learned):
        del turn, learned
        trained = [batch for batch in seen if not batch.asks[0].rating]
        visits = visits_of(trained, len(state))
        numbers = np.array([visit.number for visit in visits], int)
        right = np.array([all_right(visit.outcomes[None])[0] for visit in visits], bool)
        asked = heat(state[numbers], base, rise, highest)
        told = {}
        if len(numbers):
            told = {"heated_share": np.mean(asked > base), "ask_temperature": np.mean(asked)}
        return streaks(state, numbers, right), told

    return Curriculum(propose, init, observe)


def all_right(outcomes: np.ndarray) -> np.ndarray:
    """Groups with verdicts, all of them 1."""
    known = ~np.isnan(outcomes)
    return known.any(axis=1) & (~known | (np.nan_to_num(outcomes) >= 1 - ALIKE)).all(axis=1)


def erpo(
    base_temperature: float = 1.0,
    rise: float = 0.05,
    max_temperature: float = 1.3,
    reactivate: bool = False,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Clip-higher on the token mean, with a temperature for each prompt.

    Args:
      base_temperature: of all other prompts (T₀), whatever the run's is.
      rise: per all-right visit in a row (κ).
      max_temperature: the highest (T_max).
      reactivate: one virtual wrong answer in the statistics of every group.
    """
    mean, std = mean_with_virtual(0.0, 1), std_with_virtual(0.0, 1)
    if reactivate:
        advantage = relative_to(mean, scale=std, epsilon=epsilon)
    else:
        advantage = group_normalized(epsilon)
    return Recipe(
        objective=clipped_objective(clip_low=clip_low, clip_high=clip_high, advantage=advantage),
        experience=experience(
            curriculum=[shuffled_epochs(), heat_solved(base_temperature, rise, max_temperature)]
        ),
    )


METHOD = Method(
    erpo,
    "Explore Residual Prompts in Policy Optimization",
    "https://arxiv.org/abs/2511.04800",
    changes="curriculum, sampling",
    evidence="reconstruction",
    reports=(
        "Qwen2.5 models: above baselines like DAPO on several maths sets (abstract, no numbers)"
    ),
    traps=(
        "acts from a prompt's second visit on, so never within the first epoch; one hot mistake "
        "among right answers gets a large negative advantage; all-wrong prompts are not helped"
    ),
)
