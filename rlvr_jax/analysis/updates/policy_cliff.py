"""Policy cliff: how far the optimal policy moves when the reward changes a little.

Xu 2025, "The Policy Cliff", https://arxiv.org/abs/2507.20150 (from the abstract; the statement is
that of textbooks). If several answers have the highest reward, the map from rewards to optimal
policies is not continuous. Without regularisation any small perturbation δ moves all of the mass:
‖π' - π‖₁ = 2. With an entropy term of weight τ

    π = softmax(Q / τ),        ‖π' - π‖₁ ≤ ‖Q' - Q‖_∞ / τ

Group-normalized advantages are even steeper, because they divide by the standard deviation. A
reward that differs by 1e-3 from otherwise equal ones has an advantage of full size.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special


def optimum(values: ArrayLike, temperature: float) -> np.ndarray:
    """The policy over A answers that maximises E[Q] + τ H, [A].

    Args:
      values: value of each answer, [A] (Q).
      temperature: τ ≥ 0. At 0 all mass is on the first maximum.
    """
    values = np.asarray(values, float)
    if temperature < 0:
        raise ValueError(f"optimum: temperature must be at least 0, got {temperature}")
    if temperature == 0:
        return (np.arange(len(values)) == np.argmax(values)).astype(float)
    return special.softmax(values / temperature)


def distance(first: ArrayLike, second: ArrayLike) -> float:
    """‖π' - π‖₁ of two policies, between 0 and 2."""
    return float(np.sum(np.abs(np.asarray(first, float) - np.asarray(second, float))))


def distance_bound(first: ArrayLike, second: ArrayLike, temperature: float) -> float:
    """‖Q' - Q‖_∞ / τ; infinite at τ = 0."""
    gap = float(np.max(np.abs(np.asarray(first, float) - np.asarray(second, float))))
    return gap / temperature if temperature else np.inf


def cliff_curve(
    values: ArrayLike, direction: ArrayLike, deltas: ArrayLike, temperatures: ArrayLike
) -> np.ndarray:
    """Distances between the optima of Q + δ d and of Q, [τ, δ].

    Args:
      values: value of each answer, [A] (Q).
      direction: change of the values, [A] (d).
      deltas: sizes of the change, one-dimensional (δ).
      temperatures: weights of the entropy, one-dimensional (τ).
    """
    values, direction = np.asarray(values, float), np.asarray(direction, float)
    return np.array(
        [
            [
                distance(optimum(values + delta * direction, tau), optimum(values, tau))
                for delta in np.asarray(deltas, float)
            ]
            for tau in np.asarray(temperatures, float)
        ]
    )
