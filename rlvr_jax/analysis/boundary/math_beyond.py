"""Problems that the base cannot solve, and how many of them training brings within reach.

Mayilvahanan et al. 2025, "MATH-Beyond", https://arxiv.org/abs/2510.11653: on the problems that a
base solved in none of n = 1024 samples,

    expansion rate = fraction of them with a correct answer among n samples of the trained policy

"None of n" is itself random: sampled again, the base solves some; that fraction is the noise floor
under every expansion rate. Verifier errors are the whole signal here: read every new solution.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import fraction_of
from rlvr_jax.analysis.boundary.support_shrinkage import Support, expansion_rate, support

_SOLID = 0.5  # solve rate from which a preserved problem counts as consolidated (ours)


class Expansion(NamedTuple):
    """Effect of training on the reachable problems.

    Fields:
      counts: problems preserved, expanded, shrunk, out.
      expansion_rate: expanded over all that the base does not solve.
      noise_floor: the same with a second draw of the base in the place of the trained policy.
      reached: (preserved + expanded) / all, pass@k of the trained policy.
    """

    counts: Support
    expansion_rate: float
    noise_floor: float
    reached: float


def reachable(correct: ArrayLike) -> np.ndarray:
    """Whether a problem has a correct answer among its samples: bool [G] of [G, n]."""
    return np.any(np.asarray(correct, bool), axis=1)


def expansion(base: ArrayLike, trained: ArrayLike, base_again: ArrayLike) -> Expansion:
    """Accounts for the problems that became reachable.

    Args:
      base, trained, base_again: bool [G], `reachable` of as many samples each; the last is
        a second, independent draw of the base.
    """
    counts = support(base, trained)
    return Expansion(
        counts,
        expansion_rate(base, trained),
        expansion_rate(base, base_again),
        fraction_of(counts.preserved + counts.expanded, len(np.asarray(base))),
    )


def consolidated(base: ArrayLike, trained_rate: ArrayLike) -> int:
    """How many of the base's problems the trained policy solves in half of its samples or more.

    Args:
      base: bool [G], `reachable`.
      trained_rate: [G], fraction of correct samples.
    """
    return int(np.sum(np.asarray(base, bool) & (np.asarray(trained_rate) >= _SOLID)))


def upper_bound(n: int, chance: float = 0.05) -> float:
    """1 - chance^(1/n): a higher solve rate would have shown in n samples; about 3 / n at 0.05."""
    return 1 - chance ** (1 / n)


def unsolved(correct: ArrayLike, n: int) -> np.ndarray:
    """Numbers of the problems with no correct one among the first n samples.

    Args:
      correct: bool [G, samples].
      n: how many samples decide.
    """
    correct = np.asarray(correct, bool)
    if correct.shape[1] < n:
        raise ValueError(f"unsolved: correct must have {n} samples, got {correct.shape[1]}")
    return np.flatnonzero(~correct[:, :n].any(axis=1))
