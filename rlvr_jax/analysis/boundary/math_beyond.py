"""Problems that the base cannot solve, and the fraction of them that the trained policy solves.

Mayilvahanan et al. 2025, "MATH-Beyond", https://arxiv.org/abs/2510.11653: the problems are those
that a base solved in none of n = 1024 samples.

    expansion rate = fraction of them with a correct answer among n samples of the trained policy

"None of n" is random: in a second sampling the base solves some of these problems. Their fraction
is the noise floor of every expansion rate. Expansion rates are small, so errors of the verifier can
explain all of one: read every new solution.
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
      expansion_rate: expanded problems, as a fraction of those that the base does not solve.
      noise_floor: expansion rate of a second sampling of the base.
      reached: (preserved + expanded) / all, pass@k of the trained policy.
    """

    counts: Support
    expansion_rate: float
    noise_floor: float
    reached: float


def reachable(correct: ArrayLike) -> np.ndarray:
    """Whether each problem has a correct sample: bool [G], from bool [G, n]."""
    return np.any(np.asarray(correct, bool), axis=1)


def expansion(base: ArrayLike, trained: ArrayLike, base_again: ArrayLike) -> Expansion:
    """Counts the problems that training made solvable, next to the noise floor.

    Args:
      base, trained, base_again: bool [G], `reachable` of equally many samples. The last one is a
        second, independent sampling of the base.
    """
    counts = support(base, trained)
    return Expansion(
        counts,
        expansion_rate(base, trained),
        expansion_rate(base, base_again),
        fraction_of(counts.preserved + counts.expanded, len(np.asarray(base))),
    )


def consolidated(base: ArrayLike, trained_rate: ArrayLike) -> int:
    """Number of the base's problems that the trained policy solves in at least half of its samples.

    Args:
      base: bool [G], `reachable`.
      trained_rate: [G], fraction of correct samples.
    """
    return int(np.sum(np.asarray(base, bool) & (np.asarray(trained_rate) >= _SOLID)))


def upper_bound(n: int, chance: float = 0.05) -> float:
    """Upper bound of a solve rate without a correct one in n samples: 1 - chance^(1/n).

    At a chance of 0.05 it is about 3 / n.
    """
    return 1 - chance ** (1 / n)


def unsolved(correct: ArrayLike, n: int) -> np.ndarray:
    """Numbers of the problems with no correct one among the first n samples.

    Args:
      correct: bool [G, samples].
      n: number of samples that decide.
    """
    correct = np.asarray(correct, bool)
    if correct.shape[1] < n:
        raise ValueError(f"unsolved: correct must have {n} samples, got {correct.shape[1]}")
    return np.flatnonzero(~correct[:, :n].any(axis=1))
