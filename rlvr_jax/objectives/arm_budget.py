"""How many rollouts the prompts of each difficulty bin are given, under one budget.

The choices (arms) of a bin are numbers of rollouts. These are decisions between batches, made on
the host with numpy.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["arm_probabilities", "choose_arms", "dual_step"]


def arm_probabilities(
    scores: ArrayLike, temperature: float = 0.65, mixing: float = 0.01
) -> np.ndarray:
    """(1 - γ) softmax(η score) + γ / #arms over the arms of each bin.

    Args:
      scores: [bins, arms].
      temperature: η.
      mixing: γ, share that is spread evenly.
    """
    scaled = temperature * np.asarray(scores)
    power = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    softmax = power / power.sum(axis=1, keepdims=True)
    return (1 - mixing) * softmax + mixing / scaled.shape[1]


def choose_arms(
    probabilities: ArrayLike, num_prompts: Sequence[int], arms: Sequence[int], budget: float
) -> tuple[np.ndarray, int]:
    """One arm per bin: the total nearest to the budget, and among those the likeliest choice.

    Dynamic programming over the reachable totals.

    Args:
      probabilities: [bins, arms], positive.
      num_prompts: prompts of each bin.
      arms: numbers of rollouts to choose from.
      budget: n̄, wanted mean number of rollouts per prompt.
    Returns:
      The chosen numbers of rollouts, int [bins], and the total they use.
    """
    best = {0: (0.0, ())}  # total -> (log-probability, choices)
    for row, prompts in zip(np.log(np.asarray(probabilities)), num_prompts, strict=True):
        reached = {}
        for total, (likelihood, choices) in best.items():
            for arm, gain in zip(arms, row, strict=True):
                new = (likelihood + float(gain), (*choices, arm))
                used = total + arm * int(prompts)
                if used not in reached or new[0] > reached[used][0]:
                    reached[used] = new
        best = reached
    wanted = budget * sum(num_prompts)
    total = min(best, key=lambda used: (abs(used - wanted), -best[used][0]))
    return np.asarray(best[total][1], int), total


def dual_step(price: float, mean_rollouts: float, budget: float, rate: float = 0.05) -> float:
    """μ ← μ + rate (n - n̄): the price of a rollout rises while more than the budget are used."""
    return price + rate * (mean_rollouts - budget)
