"""Orders of prompts that a pick goes through: pure functions of weights and a generator."""

import numpy as np

from rlvr_jax.experience.parts import Turn


def mixed(weights: np.ndarray, explore: float) -> np.ndarray:
    """Chances (1 - ε) w / Σ w + ε / P; all equal where no weight is above 0.

    Args:
      weights: [P], at least 0.
      explore: ε, share of a uniform pick.
    """
    total = weights.sum()
    even = np.full(weights.shape, 1 / weights.size, weights.dtype)
    return (1 - explore) * weights / total + explore * even if total > 0 else even


def weighted_order(random: np.random.Generator, chances: np.ndarray) -> np.ndarray:
    """Positions in the order in which draws without replacement take them; chance 0 is left out.

    A draw takes the least E / p, E exponential: that is p's share of the chances that are left.
    """
    waits = random.exponential(size=chances.size)
    there = np.flatnonzero(chances > 0)
    return there[np.argsort(waits[there] / chances[there], kind="stable")]


def rarest_order(random: np.random.Generator, counts: np.ndarray) -> np.ndarray:
    """Positions by rising count, equal ones shuffled: picks from the front come round evenly."""
    return np.lexsort((random.permutation(counts.size), counts))


def of_round(order: np.ndarray, turn: Turn, number: int | None = None) -> np.ndarray:
    """The part of an order that is a round's: none is in two rounds, the last ones may be short.

    Args:
      number: places of a round; None: the prompts of a step.
    """
    number = turn.setting.prompts if number is None else number
    return order[turn.round * number : (turn.round + 1) * number]
