"""Prompts drawn by their history: hard or undecided ones more often, solved ones never again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlvr_jax.experience.curricula.batches import asks_for
from rlvr_jax.experience.curricula.history import History, no_history, visited, visits_of
from rlvr_jax.experience.curricula.picks import mixed, of_round, weighted_order
from rlvr_jax.experience.parts import Curriculum
from rlvr_jax.types.hyperparameters import Bound, Unit
from rlvr_jax.types.parts import part

__all__ = ["hard_first", "prioritized", "solved", "undecided"]


class _State(NamedTuple):
    history: History
    solved: np.ndarray


def hard_first(mean: np.ndarray) -> np.ndarray:
    """1 - s, s the average pass rate."""
    return 1 - mean


def undecided(mean: np.ndarray) -> np.ndarray:
    """s (1 - s), the variance of an outcome."""
    return mean * (1 - mean)


def solved(rates: np.ndarray, limit: float) -> np.ndarray:
    """Which visits solve their prompt for good: a pass rate of at least the limit."""
    return np.asarray(rates) >= limit


@part
def prioritized(
    weight: Callable[[np.ndarray], np.ndarray],
    explore: Unit,
    decay: Unit,
    prior: Unit = 0.5,
    resample_below: Bound = float("inf"),
) -> Curriculum:
    """Draws prompts without replacement, with chances (1 - ε) w(s) / Σ w(s) + ε / P.

    s is the exponential average of a prompt's pass rates, s' = d · s + (1 - d) · rate. A prompt
    that reaches the limit in one visit is not drawn again, until fewer than a step's prompts are
    left: then all are drawn. The shares of kinds in the task's mixture do not count.

    Args:
      weight: (s [P]) -> w [P], at least 0: `hard_first` or `undecided`.
      explore: ε in [0, 1], share of a uniform draw, so that no prompt starves.
      decay: d in [0, 1].
      prior: s before the first visit, in [0, 1].
      resample_below: the limit; infinite: none is left out.
    Metrics: solved_share (of all prompts, left out), mean_history (of s).
    Raises:
      ValueError: a share outside [0, 1], or a limit not above 0.
    """

    def init(setting):
        prompts = len(setting.task.train)
        return _State(no_history(prompts, prior=prior), np.zeros(prompts, bool))

    def propose(asks, state, turn):
        del asks
        left = ~state.solved
        if left.sum() < turn.setting.prompts:
            left = np.ones_like(left)
        chances = np.zeros(left.shape)
        chances[left] = mixed(weight(state.history.mean[left].astype(float)), explore)
        return asks_for(turn, of_round(weighted_order(turn.random(), chances), turn))

    def observe(state, turn, seen, learned):
        del learned
        visits = visits_of(seen, len(state.solved))
        numbers = [visit.number for visit in visits]
        rates = [visit.rate for visit in visits]
        history = visited(state.history, turn.step, numbers, rates, decay)
        done = state.solved.copy()
        done[np.array(numbers, int)[solved(rates, resample_below)]] = True
        told = {"solved_share": float(done.mean()), "mean_history": float(history.mean.mean())}
        return _State(history, done), told

    return Curriculum(propose, init, observe)
