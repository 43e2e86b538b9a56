"""The temperature of a prompt, by how often in a row it was solved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlvr_jax.experience.curricula.history import visits_of
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.experience.stages.choices.groups import all_right
from rlvr_jax.objectives.arguments import check_at_least
from rlvr_jax.types.hyperparameters import NonNegative, Positive
from rlvr_jax.types.parts import part

__all__ = ["heat", "heat_solved", "streaks"]


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
