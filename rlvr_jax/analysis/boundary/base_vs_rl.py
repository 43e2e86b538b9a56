"""Base and trained policy: does training widen the solvable set, or sharpen the policy?

Yue et al. 2025, "Does Reinforcement Learning Really Incentivize Reasoning Capacity in LLMs Beyond
the Base Model?", https://arxiv.org/abs/2504.13837. Both policies are sampled n times per problem,
with equal prompts, temperature and token limit:

    crossing k             smallest k at which the base's pass@k reaches RL's, if RL leads at k = 1
    efficiency gap Δ_SE    base pass@K - RL pass@1: 0 if all that is reachable became a first try
    solvable sets          problems with a correct sample: both, RL only, base only, neither

A crossing near k = n is noise, because the curves depend on single problems there. Policies with
equal temperature can differ in entropy. The paper therefore also raises the temperature of the
trained policy until both entropies agree.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import fraction_of
from rlvr_jax.analysis.boundary.paired_problems import PairedTable, paired_table
from rlvr_jax.analysis.boundary.pass_at_k import pass_at_k


class BaseVsRL(NamedTuple):
    """A base policy and a trained one on the same problems.

    Fields:
      curve_base, curve_rl: [n], mean pass@k over problems, k = 1 … n.
      crossing_k: see `crossing_k`; 0 if there is none.
      efficiency_gap: base pass@n - RL pass@1.
      solvable: counts of problems; "first" is the base, "second" RL.
      subset_fraction: fraction of problems solvable by RL that the base also solves.
      histogram_base, histogram_rl: int [bins], number of problems by solve rate in [0, 1].
    """

    curve_base: np.ndarray
    curve_rl: np.ndarray
    crossing_k: int
    efficiency_gap: float
    solvable: PairedTable
    subset_fraction: float
    histogram_base: np.ndarray
    histogram_rl: np.ndarray


def base_vs_rl(base_correct: ArrayLike, rl_correct: ArrayLike, n: int, bins: int = 5) -> BaseVsRL:
    """Compares two policies by correct samples per problem.

    Args:
      base_correct, rl_correct: int [G], correct samples of each problem.
      n: samples per problem, of both policies.
      bins: number of bins of the histograms.
    """
    base, rl = np.asarray(base_correct), np.asarray(rl_correct)
    if bins < 1:
        raise ValueError(f"base_vs_rl: bins must be at least 1, got {bins}")
    solvable = paired_table(base > 0, rl > 0)
    curve_base, curve_rl = _curve(base, n), _curve(rl, n)
    return BaseVsRL(
        curve_base,
        curve_rl,
        crossing_k(curve_base, curve_rl),
        float(curve_base[-1] - curve_rl[0]),
        solvable,
        fraction_of(solvable.both, solvable.both + solvable.second_only),
        solve_rates(base, n, bins),
        solve_rates(rl, n, bins),
    )


def crossing_k(curve_base: ArrayLike, curve_rl: ArrayLike) -> int:
    """The smallest k at which the base reaches RL; 0: never, or RL does not lead at k = 1.

    Args:
      curve_base, curve_rl: [K], pass@k for k = 1 … K.
    """
    base, rl = np.asarray(curve_base), np.asarray(curve_rl)
    if not rl[0] > base[0]:
        return 0
    reached = np.flatnonzero(base >= rl)
    return int(reached[0]) + 1 if len(reached) else 0


class Crossing(NamedTuple):
    """The k at which two pass@k curves cross, with a bootstrap interval over problems.

    Fields:
      k: crossing of the curves over all problems; 0: no crossing.
      low, high: 2.5 % and 97.5 % quantiles of k over the resamples that cross; NaN if none crosses.
      fraction: fraction of the resamples that cross.
    """

    k: int
    low: float
    high: float
    fraction: float


def crossing_interval(
    base_correct: ArrayLike,
    rl_correct: ArrayLike,
    n: int,
    rounds: int = 1000,
) -> Crossing:
    """Resamples the problems, the same for both policies, and finds the crossings of the curves.

    Args:
      base_correct, rl_correct: int [G], correct ones of n samples.
      n: samples per problem, of both.
      rounds: number of resamples.
    """
    ks = np.arange(1, n + 1)
    base, rl = (pass_at_k(n, np.asarray(c)[:, None], ks) for c in (base_correct, rl_correct))
    problems = len(base)
    times = np.random.default_rng(0).multinomial(
        problems, np.full(problems, 1 / problems), size=rounds
    )
    sampled = [crossing_k(t @ base, t @ rl) for t in times]
    crossed = [k for k in sampled if k]
    low, high = np.quantile(crossed, [0.025, 0.975]) if crossed else (np.nan, np.nan)
    whole = crossing_k(base.mean(axis=0), rl.mean(axis=0))
    return Crossing(whole, float(low), float(high), len(crossed) / rounds)


def solve_rates(correct: ArrayLike, n: int, bins: int) -> np.ndarray:
    """Histogram of c / n over [0, 1], int [bins]. Integer arithmetic selects the bin.

    Training with verifiable rewards moves problems to solve rate 1 and to exactly 0.
    """
    place = np.minimum(np.asarray(correct, int) * bins // n, bins - 1)
    return np.bincount(place, minlength=bins)


def _curve(correct: np.ndarray, n: int) -> np.ndarray:
    """Mean pass@k over problems for k = 1 … n."""
    return pass_at_k(n, correct[:, None], np.arange(1, n + 1)).mean(axis=0)
