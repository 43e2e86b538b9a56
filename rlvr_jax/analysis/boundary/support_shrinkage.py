"""Support: problems that a policy can solve, and that training preserves, finds or loses.

Wu et al. 2025, "The Invisible Leash", https://arxiv.org/abs/2507.14843. A problem is in a policy's
support at k samples if one of them is correct. A completion is in the support if its log-prob is
above a threshold. Counts are P (preserved), E (expanded: trained policy only), S (shrunk: base
only) and O (neither):

    retention SRR = P / (P + S)        discovery NDR = E / (P + E)
    score SDS = 2 SRR NDR / (SRR + NDR)        net change NSCR = (E - S) / (P + E + S)

The value is 0 if the denominator is 0. An event with probability p does not occur in k samples with
probability (1 - p)^k. This is at least ζ if p < ε = -ln ζ / k.

A part of E and S is chance. `noise_floor` estimates this part from n samples of one policy, by two
disjoint subsets of k ≤ n / 2 samples. The average over all subsets is

    both: 2 pass@k - pass@2k      only one, each side: pass@2k - pass@k      neither: 1 - pass@2k

with unbiased pass@k. `expected_support` is the average for two policies. The noise floor is ours:
the paper compares single samplings.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import fraction_of, histogram_entropy
from rlvr_jax.analysis.boundary.pass_at_k import pass_at_k


class Support(NamedTuple):
    """Numbers of problems (or completions) that are preserved, expanded, shrunk and out of support.

    They are integers for one sampling, and fractional for an average over samplings.
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
        """NSCR: expanded minus shrunk, as a fraction of all problems in either support."""
        return fraction_of(
            self.expanded - self.shrunk, self.preserved + self.expanded + self.shrunk
        )


def support_kinds(base: ArrayLike, trained: ArrayLike) -> np.ndarray:
    """The kind of each problem: 0 preserved, 1 expanded, 2 shrunk, 3 out; int, with the given
    shape."""
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
    """The counts at k samples, averaged over all subsets of k of the n samples of each policy.

    Args:
      base_correct, trained_correct: [G], correct samples of n.
      n: samples per problem, one number or [G].
      k: 1 ≤ k ≤ n. At k = n the counts are those of the sampling itself.
    """
    base, trained = pass_at_k(n, base_correct, k), pass_at_k(n, trained_correct, k)
    kinds = (base * trained, (1 - base) * trained, base * (1 - trained), (1 - base) * (1 - trained))
    return Support(*(float(np.sum(kind)) for kind in kinds))


def noise_floor(correct: ArrayLike, n: ArrayLike, k: int) -> Support:
    """The expected change between two independent samplings of one policy, with k samples each.

    Args:
      correct: [G], correct samples of n, of one policy.
      n: samples per problem, one number or [G].
      k: at most n / 2, so that the two subsets share no sample.
    """
    if 2 * k > np.min(n):
        raise ValueError(
            f"noise_floor: k must be at most half of the {np.min(n)} samples, got {k}:"
            f" {2 * k} samples per problem are needed"
        )
    once, twice = pass_at_k(n, correct, k), pass_at_k(n, correct, 2 * k)
    alone = float(np.sum(twice - once))
    return Support(float(np.sum(2 * once - twice)), alone, alone, float(np.sum(1 - twice)))


def unseen_mass(k: int, chance: float = 0.05) -> float:
    """ε = -ln ζ / k: k samples miss a lower solve rate with a probability of at least ζ."""
    return -math.log(chance) / k


def expansion_rate(base: ArrayLike, trained: ArrayLike) -> float:
    """Fraction of the problems outside the base's support that the trained policy solves."""
    counts = support(base, trained)
    return fraction_of(counts.expanded, counts.expanded + counts.out)


def answer_entropy(answers: ArrayLike) -> np.ndarray:
    """Entropy (nats) of the answers of each problem, [G]. It can fall while token entropy rises.

    Args:
      answers: int [G, N], ids of extracted answers. A missing answer has an id, too.
    """
    rows = np.asarray(answers)
    return np.array([histogram_entropy(np.unique(row, return_counts=True)[1]) for row in rows])
