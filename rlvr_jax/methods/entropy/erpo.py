"""ERPO: samples prompts whose responses are all correct at a higher temperature, until one is not.

"Explore Residual Prompts in Policy Optimization", https://arxiv.org/abs/2511.04800

    T    = min(T₀ + κ m, T_max), m the times in a row that all responses were correct
    A_i  = (R_i - mean) / (std + 1e-6), std with n - 1
    loss = Σ max(-A ρ, -A clip(ρ, 1 - ε_low, 1 + ε_high)) / Σ n_i

A group of equal outcomes has no gradient. Late in training, most groups are all correct; a higher
temperature makes them mixed again. The count m is stored by prompt and reads outcomes, not shaped
rewards. Old log-probs are those at T, so ρ is exact. Prompts whose responses are all incorrect stay
at T₀.

A reconstruction from the abstract and reviews: the schedule, κ (`rise`), T_max and the clip are
ours. Above 1.3, small models lose the format. `reactivate` is mentioned in the reviews; its form is
ours, and it is off by default. One virtual reward of 0 enters the group's mean and std, so that an
all-correct group has a small positive advantage.

Reports: Qwen2.5 models: above baselines like DAPO on several maths sets (abstract, no numbers).
Traps: The method acts from the second time that a prompt is sampled, so never within the first
epoch. One error at a high temperature among correct responses gets a large negative advantage.
"""

from dataclasses import replace

import numpy as np

from rlvr_jax.experience import Curriculum, experience, shuffled_epochs
from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.stages.choices.groups import ALIKE
from rlvr_jax.objectives import clipped_objective, group_normalized, relative_to
from rlvr_jax.objectives.statistics.groups import mean_with_virtual, std_with_virtual
from rlvr_jax.types import Method, Recipe, Shown, part
from rlvr_jax.types.hyperparameters import ClipHigh, ClipLow, Epsilon, NonNegative, Positive


@part
def heat_solved(base: Positive, rise: NonNegative, highest: Positive) -> Curriculum:
    """Heats prompts whose last responses were all correct: T = min(T₀ + κ m, T_max).

    It changes the requests of the curricula before it. m is the number of times in a row that all
    responses to a prompt were correct.

    Metrics: heated_fraction (of the step's prompts), ask_temperature (their mean).
    Raises:
      ValueError: T_max below T₀.
    """
    if highest < base:
        raise ValueError(f"heat_solved: highest must be at least {base:g}, got {highest}")

    def init(setting):
        return np.zeros(len(setting.task.train), np.int32)

    def propose(requests, state, turn):
        return [
            request
            if request.rating or request.number >= len(state)
            else replace(
                request, temperature=float(heat(state[request.number], base, rise, highest))
            )
            for request in requests
        ]

    def observe(state, turn, seen, learned):
        trained = [batch for batch in seen if not batch.requests[0].rating]
        groups = visits_of(trained, len(state))
        numbers = np.array([visit.number for visit in groups], int)
        correct = np.array([all_correct(visit.outcomes[None])[0] for visit in groups], bool)
        temperatures = heat(state[numbers], base, rise, highest)
        metrics = {}
        if len(numbers):
            metrics["heated_fraction"] = np.mean(temperatures > base)
            metrics["ask_temperature"] = np.mean(temperatures)
        return streaks(state, numbers, correct), metrics

    return Curriculum(propose, init, observe)


def heat(streak: np.ndarray, base: float, rise: float, highest: float) -> np.ndarray:
    """min(T₀ + κ m, T_max).

    Args:
      streak: times in a row that all responses were correct, int, by prompt (m).
      base: temperature of a prompt without such a streak (T₀).
      rise: increase of the temperature per time (κ).
      highest: bound of the temperature (T_max).
    """
    return np.minimum(base + rise * np.asarray(streak), highest)


def all_correct(outcomes: np.ndarray) -> np.ndarray:
    """Whether groups, [G, N], have grades and all of them are 1; NaN is ungraded."""
    known = ~np.isnan(outcomes)
    return known.any(axis=1) & (~known | (np.nan_to_num(outcomes) >= 1 - ALIKE)).all(axis=1)


def streaks(streak: np.ndarray, numbers: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """m by prompt after it was sampled: one more, or 0 after an error.

    Args:
      numbers: of the prompts that were sampled, in order.
      correct: bool, whether all responses were.
    """
    streak = streak.copy()
    for number, every in zip(numbers, correct, strict=True):
        streak[number] = streak[number] + 1 if every else 0
    return streak


def erpo(
    base_temperature: Positive = 1.0,
    rise: NonNegative = 0.05,
    max_temperature: Positive = 1.3,
    reactivate: bool = False,
    clip_low: ClipLow = 0.2,
    clip_high: ClipHigh = 0.28,
    epsilon: Epsilon = 1e-6,
) -> Recipe:
    """Applies clip-higher with the token mean and a temperature for each prompt.

    Args:
      base_temperature: temperature of all other prompts (T₀); it replaces the run's.
      rise: rise of the temperature per time in a row that all responses were correct (κ).
      max_temperature: highest temperature (T_max).
      reactivate: whether statistics of every group include one virtual incorrect response.
    """
    advantage = group_normalized(epsilon)
    if reactivate:
        mean, std = mean_with_virtual(0.0, 1), std_with_virtual(0.0, 1)
        advantage = relative_to(mean, scale=std, epsilon=epsilon)
    return Recipe(
        objective=clipped_objective(clip_low=clip_low, clip_high=clip_high, advantage=advantage),
        experience=experience(
            curriculum=[shuffled_epochs(), heat_solved(base_temperature, rise, max_temperature)]
        ),
    )


METHOD = Method(
    erpo,
    changes="curriculum, sampling",
    evidence="reconstruction",
    shown=Shown(
        "brackets:train=64", "experience/heated_fraction", settings={"samples_per_prompt": 4}
    ),
)
