"""Orders of prompts to choose from: pure functions of weights and a generator."""

import numpy as np

from rlvr_jax.experience.parts import StepContext


def mixed(weights: np.ndarray, explore: float) -> np.ndarray:
    """Probabilities (1 - ε) w / Σ w + ε / P; uniform if no weight is positive.

    Args:
      weights: [P], at least 0.
      explore: ε, fraction of uniform sampling.
    """
    total = weights.sum()
    even = np.full(weights.shape, 1 / weights.size, weights.dtype)
    return (1 - explore) * weights / total + explore * even if total > 0 else even


def weighted_order(random: np.random.Generator, chances: np.ndarray) -> np.ndarray:
    """Positions in an order of sampling without replacement; probability 0 is left out.

    The positions are sorted by E / p with exponential E: the first of those left is chosen with
    probability p / Σ p.
    """
    waits = random.exponential(size=chances.size)
    there = np.flatnonzero(chances > 0)
    return there[np.argsort(waits[there] / chances[there], kind="stable")]


def rarest_order(random: np.random.Generator, counts: np.ndarray) -> np.ndarray:
    """Positions by ascending count; equal counts are shuffled."""
    return np.lexsort((random.permutation(counts.size), counts))


def of_round(order: np.ndarray, turn: StepContext, number: int | None = None) -> np.ndarray:
    """The segment of an order that belongs to the current round; the last one may be short.

    Args:
      number: positions per round; None: the prompts of a step.
    """
    number = turn.setting.prompts if number is None else number
    return order[turn.round * number : (turn.round + 1) * number]
