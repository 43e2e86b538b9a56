"""Support: the problems that a policy can solve, and those that training preserves, finds, loses.

Wu et al. 2025, "The Invisible Leash", https://arxiv.org/abs/2507.14843. A problem is in a policy's
support at k samples if one is correct (or, for completions, if its log-probability is above a
threshold). With P preserved, E expanded (trained policy only), S shrunk (base only), O out:

    retention SRR = P / (P + S)        discovery NDR = E / (P + E)
    score SDS = 2 SRR NDR / (SRR + NDR)        net change NSCR = (E - S) / (P + E + S)

With an empty denominator the value is 0. All k samples miss a mass p with chance (1 - p)^k ≥ ζ if
p < ε = -ln ζ / k: rarer events are not seen.

Part of every E and S is chance. `noise_floor` estimates it from one set of n samples, by two
disjoint subsets of k ≤ n / 2 of them. The average over all subsets is

    both: 2 pass@k - pass@2k      only one, each side: pass@2k - pass@k      neither: 1 - pass@2k

with unbiased pass@k. `expected_support` is the average for two policies. This noise floor is ours:
the paper compares single samplings.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import fraction_of, histogram_entropy
from rlvr_jax.analysis.boundary.pass_at_k import pass_at_k


class Support(NamedTuple):
    """How many problems (or completions) are preserved, expanded, shrunk and out of support.

    Counts are whole for one draw, fractional for an average over draws.
    """

    preserved: float
    expanded: float
    shrunk: float
    out: float

    @property
    def retention(self) -> float:
        """SRR: fraction of the base's support that is preserved."""
        return fraction_of(self.preserved, self.preserved + self.shrunk)

    @property
    def discovery(self) -> float:
        """NDR: fraction of the trained policy's support that the base does not have."""
        return fraction_of(self.expanded, self.preserved + self.expanded)

    @property
    def score(self) -> float:
        """SDS: harmonic mean of the two."""
        both = self.retention + self.discovery
        return fraction_of(2 * self.retention * self.discovery, both)

    @property
    def net_change(self) -> float:
        """NSCR: expanded less shrunk, of all that either supports."""
        return fraction_of(
            self.expanded - self.shrunk, self.preserved + self.expanded + self.shrunk
        )


def support_kinds(base: ArrayLike, trained: ArrayLike) -> np.ndarray:
    """0 preserved, 1 expanded, 2 shrunk, 3 out, of each problem: int of the shape given."""
    return np.where(np.asarray(base, bool), 2, 3) - np.where(np.asarray(trained, bool), 2, 0)


def support(base: ArrayLike, trained: ArrayLike) -> Support:
    """Counts the kinds.

    Args:
      base, trained: bool [G], whether a problem (or completion) is in the policy's support.
    """
    if np.shape(base) != np.shape(trained):
        raise ValueError(
            f"support: base and trained must have one shape, got {np.shape(base)} and"
            f" {np.shape(trained)}"
        )
    counts = np.bincount(support_kinds(base, trained).ravel(), minlength=4)
    return Support(*counts.tolist())


def expected_support(
    base_correct: ArrayLike, trained_correct: ArrayLike, n: ArrayLike, k: int
) -> Support:
    """The counts at k samples, on average over all ways to take k of either policy's n.

    Args:
      base_correct, trained_correct: [G], correct ones of n samples.
      n: samples per problem, one number or [G].
      k: 1 ≤ k ≤ n; at k = n this is the one draw that was made.
    """
    base, trained = pass_at_k(n, base_correct, k), pass_at_k(n, trained_correct, k)
    kinds = (base * trained, (1 - base) * trained, base * (1 - trained), (1 - base) * (1 - trained))
    return Support(*(float(np.sum(kind)) for kind in kinds))


def noise_floor(correct: ArrayLike, n: ArrayLike, k: int) -> Support:
    """Noise floor: the change between two independent draws of k samples of one policy.

    Args:
      correct: [G], correct ones of n samples of one policy.
      n: samples per problem, one number or [G].
      k: at most n / 2, so that the two draws share no sample.
    """
    if 2 * k > np.min(n):
        raise ValueError(
            f"noise_floor: k must be at most half of the {np.min(n)} samples, got {k}:"
            f" {2 * k} samples per problem are wanted"
        )
    once, twice = pass_at_k(n, correct, k), pass_at_k(n, correct, 2 * k)
    alone = float(np.sum(twice - once))
    return Support(float(np.sum(2 * once - twice)), alone, alone, float(np.sum(1 - twice)))


def unseen_mass(k: int, chance: float = 0.05) -> float:
    """ε = -ln ζ / k: a solve rate below it is missed by k samples with at least this chance ζ."""
    return -math.log(chance) / k


def expansion_rate(base: ArrayLike, trained: ArrayLike) -> float:
    """Share of the problems outside the base's support that the trained policy solves."""
    counts = support(base, trained)
    return fraction_of(counts.expanded, counts.expanded + counts.out)


def answer_entropy(answers: ArrayLike) -> np.ndarray:
    """Entropy (nats) of the answers of each problem, [G]: it may fall while token entropy rises.

    Args:
      answers: int [G, N], ids of extracted answers; an id for "none" is also an answer.
    """
    rows = np.asarray(answers)
    return np.array([histogram_entropy(np.unique(row, return_counts=True)[1]) for row in rows])
