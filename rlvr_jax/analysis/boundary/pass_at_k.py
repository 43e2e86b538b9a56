"""pass@k and related numbers: success with k samples per problem, estimated from n samples.

A problem has n independent samples of one policy at one temperature, of which c are correct. For k
of the n samples, chosen without replacement:

    pass@k = 1 - C(n - c, k) / C(n, k)      one of the k is correct
    pass^k = C(c, k) / C(n, k)              all k are correct

Both are unbiased estimates of 1 - (1 - p)^k and p^k. The plug-in estimate 1 - (1 - c / n)^k is too
low, by Jensen's inequality. At k = n the estimate of a problem is 1 if c > 0, else 0. Its variance
is small only for n ≥ 2 k, so every result here reports n and k.

Source: Chen et al. 2021 (the estimator), https://arxiv.org/abs/2107.03374; Yue et al. 2025 (up to
k = 1024, remarks on variance), https://arxiv.org/abs/2504.13837.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rlvr_jax.analysis.arrays import columns

# C(n, k) of larger n does not fit into float64.
_LARGEST_MAJORITY = 1000


def pass_at_k(num_samples: ArrayLike, num_correct: ArrayLike, k: ArrayLike) -> np.ndarray:
    """Unbiased estimate of the chance that one of k samples is correct.

    Examples:
      >>> from rlvr_jax import pass_at_k
      >>> round(float(pass_at_k(64, 3, 8)), 3)
      0.335

    pass@k = 1 - C(n - c, k) / C(n, k), computed as a product of min(k, c) ratios. There are no
    factorials, so n may be in the thousands.

    Args:
      num_samples: n, samples per problem; the three arguments broadcast.
      num_correct: c, number of correct samples, 0 ≤ c ≤ n.
      k: samples that are allowed, 1 ≤ k ≤ n.
    Returns:
      float64 of the broadcast shape, in [0, 1].
    Raises:
      ValueError: a count or k is outside its range, or not an integer.
    """
    n, c, k = _counts("pass_at_k", num_samples, num_correct, k)
    return 1.0 - _chance_to_avoid(n, c, k)


def all_at_k(num_samples: ArrayLike, num_correct: ArrayLike, k: ArrayLike) -> np.ndarray:
    """Unbiased estimate of the chance that all of k samples are correct ("pass^k").

    pass^k = C(c, k) / C(n, k). Arguments and errors as for `pass_at_k`.
    """
    n, c, k = _counts("all_at_k", num_samples, num_correct, k)
    return _chance_to_avoid(n, n - c, k)


def plug_in_pass_at_k(num_samples: ArrayLike, num_correct: ArrayLike, k: ArrayLike) -> np.ndarray:
    """1 - (1 - c / n)^k, which other code reports: too low where c is small and k large.

    Use it only to compare with published numbers. Arguments and errors as for `pass_at_k`.
    """
    n, c, k = _counts("plug_in_pass_at_k", num_samples, num_correct, k)
    return 1.0 - (1.0 - c / n) ** k


def pass_at_k_variance(num_samples: ArrayLike, num_correct: ArrayLike, k: ArrayLike) -> np.ndarray:
    """Variance of `pass_at_k` for one problem with the pass rate c / n.

    Σ_y Binom(y; n, c / n) est(y)² - (Σ_y Binom(y; n, c / n) est(y))², y = 0 … n. It covers the
    sampling noise, not the choice of problems. Arguments and errors as for `pass_at_k`.
    """
    n, c, k = (x[..., None] for x in _counts("pass_at_k_variance", num_samples, num_correct, k))
    y = np.arange(int(n.max(initial=0)) + 1).reshape((1,) * (n.ndim - 1) + (-1,))
    y, inside = np.minimum(y, n), y <= n
    log_choices = special.gammaln(n + 1) - special.gammaln(y + 1) - special.gammaln(n - y + 1)
    log_chance = log_choices + special.xlogy(y, c / n) + special.xlog1py(n - y, -c / n)
    chance = np.where(inside, np.exp(log_chance), 0.0)
    estimate = 1.0 - _chance_to_avoid(n, y, k)
    mean = np.sum(chance * estimate, axis=-1, keepdims=True)
    return np.sum(chance * (estimate - mean) ** 2, axis=-1)


def majority_at_k(
    answers: Sequence[Hashable], correct: Hashable, k: int, unparsed: Hashable = None
) -> float:
    """Exact chance that the plurality answer of k of the n samples is correct ("maj@k").

    It is the mean over all C(n, k) subsets. Tied answers share the credit equally, which is the
    expectation of a random tie-break. Other code takes the first answer. Unparsed answers do not
    vote. Subsets are counted by products of polynomials. If m of the k samples have the correct
    answer, a coefficient is the number of ways to fill the other k - m places. No other answer may
    occur there more than m times.

    Args:
      answers: [n], the extracted answers of one problem.
      correct: the correct answer.
      k: 1 ≤ k ≤ n ≤ 1000; k = n is the usual cons@n.
      unparsed: the value of a sample without an answer.
    Raises:
      ValueError: k or n is out of range.
    """
    counts = Counter(answers)
    n = counts.total()
    if not 1 <= n <= _LARGEST_MAJORITY:
        raise ValueError(
            f"majority_at_k: answers must be 1 to {_LARGEST_MAJORITY}, got {n} of them"
        )
    _counts("majority_at_k", n, 0, k)
    num_silent, num_correct = counts.pop(unparsed, 0), counts.pop(correct, 0)

    won = 0.0
    for votes in range(1, min(num_correct, k) + 1):
        places = k - votes
        # ways[t, d]: ways to choose d of the other samples so that t answers tie with the correct
        # one
        ways = np.zeros((places // votes + 1, places + 1))
        ways[0] = _binomials(num_silent, places)
        for count in counts.values():
            choices = _binomials(count, places)
            below = np.where(np.arange(places + 1) < votes, choices, 0.0)
            chosen = np.stack([np.convolve(row, below)[: places + 1] for row in ways])
            if votes <= min(count, places):
                chosen[1:, votes:] += ways[:-1, : places + 1 - votes] * choices[votes]
            ways = chosen
        shared = ways[:, places] / np.arange(1, len(ways) + 1)
        won += special.binom(num_correct, votes) * shared.sum()
    return float(won / special.binom(n, k))


def majority_answer(answers: Sequence[int]) -> int:
    """The most frequent answer; of equally frequent ones, the smallest."""
    counts = Counter(answers)
    return min(counts, key=lambda answer: (-counts[answer], answer))


def best_of_k(correct: ArrayLike, scores: ArrayLike, k: int) -> float:
    """Exact chance that the sample with the highest score, of k of the n samples, is correct.

    With the samples sorted by falling score: Σ_j correct_(j) C(n - j, k - 1) / C(n, k), j = 1 … n.
    Samples with equal scores share the credit, which is the expectation of a random tie-break.

    Args:
      correct: [n], 0 or 1 (or an outcome in between).
      scores: [n], values of the scorer; larger is better.
      k: samples from which the best is taken, 1 ≤ k ≤ n.
    Raises:
      ValueError: shapes differ, k or correct is out of range, or a score is NaN.
    """
    correct, scores = columns("best_of_k", "n", correct=correct, scores=scores)
    if np.isnan(scores).any():
        raise ValueError("best_of_k: scores must be numbers, got NaN")
    if not np.all((correct >= 0) & (correct <= 1)):
        raise ValueError(f"best_of_k: correct must be in [0, 1], got {correct}")
    n = len(correct)
    _counts("best_of_k", n, 0, k)
    level = np.unique(-scores, return_inverse=True)[1]
    shared = (np.bincount(level, correct) / np.bincount(level))[np.sort(level)]
    # chance that place 1 is the best of the k: k / n; from place j to j + 1: the factor below
    place = np.arange(1, n)
    falling = np.cumprod(np.maximum(n - place - k + 1, 0) / (n - place))
    return float(np.sum(shared * (k / n) * np.concatenate([[1.0], falling])))


@dataclass(frozen=True)
class PassAtK:
    """Mean pass@k over problems, with the numbers of samples and problems.

    Fields:
      mean: mean of the estimates of the problems.
      standard_error: their standard deviation divided by √num_problems. It covers the choice of
        problems and the sampling noise. NaN for one problem.
      k: number of allowed samples.
      num_samples: n, the smallest number of samples of a problem.
      num_problems: number of problems of the mean.
    """

    mean: float
    standard_error: float
    k: int
    num_samples: int
    num_problems: int

    def __str__(self) -> str:
        return (
            f"pass@{self.k} = {self.mean:.3f} ± {self.standard_error:.3f}"
            f" (n = {self.num_samples} samples, {self.num_problems} problems)"
        )


def mean_pass_at_k(num_samples: ArrayLike, num_correct: ArrayLike, k: int) -> PassAtK:
    """Averages `pass_at_k` over problems; returns the mean and its standard error.

    Args:
      num_samples: n, one number or [problems].
      num_correct: c, [problems].
      k: 1 ≤ k ≤ the smallest n.
    Raises:
      ValueError: there is no problem, or a count or k is out of range.
    """
    estimates = np.ravel(pass_at_k(num_samples, num_correct, k))
    if not estimates.size:
        raise ValueError("mean_pass_at_k: num_correct must have a problem, got none")
    error = np.std(estimates, ddof=1) / np.sqrt(estimates.size) if estimates.size > 1 else np.nan
    smallest = int(np.min(num_samples))
    return PassAtK(float(estimates.mean()), float(error), int(k), smallest, estimates.size)


def pass_at_k_curve(
    num_samples: ArrayLike, num_correct: ArrayLike, ks: Sequence[int] | None = None
) -> list[PassAtK]:
    """`mean_pass_at_k` for several k, by default 1, 2, 4, … up to the smallest n."""
    if not np.size(num_samples) or not np.all(np.isfinite(num_samples)):
        raise ValueError(f"pass_at_k_curve: num_samples must be whole numbers, got {num_samples}")
    if ks is None:
        ks = [2**i for i in range(int(np.min(num_samples)).bit_length())]
    return [mean_pass_at_k(num_samples, num_correct, k) for k in ks]


def _chance_to_avoid(n: np.ndarray, marked: np.ndarray, k: np.ndarray) -> np.ndarray:
    """C(n - marked, k) / C(n, k): no marked sample among k; symmetric in `marked` and k."""
    few, many = np.minimum(marked, k), np.maximum(marked, k)
    chance = np.ones(np.broadcast(n, few).shape)
    for i in range(int(few.max(initial=0))):
        # where i ≥ few the factor is 1; there n - i may be 0
        factor = np.maximum(n - many - i, 0) / np.maximum(n - i, 1)
        chance = np.where(i < few, chance * factor, chance)
    return chance


def _binomials(n: int, largest: int) -> np.ndarray:
    """C(n, 0), …, C(n, largest); 0 beyond n."""
    return special.binom(n, np.arange(largest + 1)) * (np.arange(largest + 1) <= n)


def _counts(function: str, *counts: ArrayLike) -> list[np.ndarray]:
    """Checks n, c and k and broadcasts them against each other."""
    n, c, k = arrays = np.broadcast_arrays(*(np.asarray(x, float) for x in counts))
    for name, array in zip(("num_samples", "num_correct", "k"), arrays, strict=True):
        whole = np.isfinite(array) & (array == np.floor(array))
        if not np.all(whole):
            raise ValueError(f"{function}: {name} must be whole numbers, got {array[~whole][0]}")
    if np.any(bad := ~((c >= 0) & (c <= n))):
        raise ValueError(
            f"{function}: num_correct must be in [0, num_samples], got {c[bad][0]:g}"
            f" of {n[bad][0]:g}"
        )
    if np.any(bad := ~((k >= 1) & (k <= n))):
        raise ValueError(
            f"{function}: k must be in [1, num_samples], got k = {k[bad][0]:g} with"
            f" num_samples = {n[bad][0]:g}"
        )
    return [n, c, k]
