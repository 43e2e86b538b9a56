"""Two policies on the same problems: exact tests of the difference between their solved sets.

McNemar's sign test uses the problems that only one policy solves. Under the null hypothesis each
policy is that one with probability ½. Fisher's test compares the numbers of correct samples of one
problem. Its p-values are corrected over problems by Holm's method.

Sources: McNemar 1947, https://doi.org/10.1007/BF02295996; Holm 1979,
https://www.jstor.org/stable/4615733; the exact two-sided forms are the textbook's.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rlvr_jax.analysis.arrays import columns
from rlvr_jax.analysis.boundary.pass_at_k import pass_at_k
from rlvr_jax.analysis.prompt_bootstrap import PromptInterval, bootstrap_mean

# Rounding must not exclude tables that are as probable as the observed one.
_TIE = 1e-9


class PairedTable(NamedTuple):
    """Numbers of problems by the policies that solve them.

    Fields:
      both, second_only, first_only, neither: counts.
      p_value: p-value of the exact two-sided sign test of `second_only` and `first_only`.
    """

    both: int
    second_only: int
    first_only: int
    neither: int
    p_value: float


def paired_table(first: ArrayLike, second: ArrayLike) -> PairedTable:
    """Counts problems by which of two policies solves them.

    Args:
      first, second: bool [G], whether the policy solves the problem: it has a correct sample, or
        its solve rate is above a threshold.
    """
    found = columns("paired_table", "problems", first=first, second=second)
    first, second = (each.astype(bool) for each in found)
    gained, lost = int(np.sum(second & ~first)), int(np.sum(first & ~second))
    both, neither = int(np.sum(first & second)), int(np.sum(~first & ~second))
    return PairedTable(both, gained, lost, neither, sign_test(gained, lost))


def sign_test(ups: int, downs: int) -> float:
    """Exact two-sided p-value of `ups` and `downs`, if both have probability ½; 1 if both are 0."""
    number = ups + downs
    return float(min(1.0, 2 * special.bdtr(min(ups, downs), number, 0.5))) if number else 1.0


def changed_problems(
    first_correct: ArrayLike,
    second_correct: ArrayLike,
    first_samples: ArrayLike,
    second_samples: ArrayLike,
) -> np.ndarray:
    """Fisher's exact two-sided p-value of each problem, for equal pass rates of both policies.

    It is the sum of the probabilities of all tables with equal margins that are at most as probable
    as the observed one. `holm` corrects the p-values over problems.

    Args:
      first_correct, second_correct: [G], correct samples.
      first_samples, second_samples: samples per problem, one number or [G].
    Returns:
      float64 [G].
    """
    c1, c2, n1, n2 = np.broadcast_arrays(
        *(
            np.asarray(x, int)
            for x in (first_correct, second_correct, first_samples, second_samples)
        )
    )
    for name, c, n in (("first", c1, n1), ("second", c2, n2)):
        if np.any((c < 0) | (c > n)):
            raise ValueError(
                f"changed_problems: {name}_correct must be in [0, {name}_samples], got {c} of {n}"
            )
    c1, c2, n1, n2 = (x[..., None] for x in (c1, c2, n1, n2))
    correct = c1 + c2
    x = np.arange(int(n1.max(initial=0)) + 1)
    possible = (x <= n1) & (x <= correct) & (correct - x <= n2)

    def log_choices(n, k):
        return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)

    def log_chance(x):
        chosen = log_choices(n1, x) + log_choices(n2, correct - x)
        return chosen - log_choices(n1 + n2, correct)

    each = np.where(possible, log_chance(np.where(possible, x, c1)), -np.inf)
    unlikely = each <= log_chance(c1) + _TIE
    return np.minimum(np.sum(np.where(unlikely, np.exp(each), 0.0), axis=-1), 1.0)


def holm(p_values: ArrayLike) -> np.ndarray:
    """p-values with Holm's correction, [N], in the given order."""
    p = np.asarray(p_values, float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def paired_gap(
    first_correct: ArrayLike,
    second_correct: ArrayLike,
    samples: int,
    k: int,
    weights: ArrayLike | None = None,
) -> PromptInterval:
    """pass@k of the second policy minus that of the first, with a bootstrap over problems.

    Args:
      first_correct, second_correct: correct samples, [G], or [S, G] for several paired seeds.
      samples: n, samples per problem of both policies.
      k: samples that a reader may take, 1 ≤ k ≤ n.
      weights: [G], weights of the problems; None: equal weights.
    """
    first, second = np.atleast_2d(first_correct), np.atleast_2d(second_correct)
    gaps = pass_at_k(samples, second, k) - pass_at_k(samples, first, k)
    return bootstrap_mean(gaps, np.ones(gaps.shape[1]) if weights is None else weights)
