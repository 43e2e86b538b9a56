"""Conclusions of a board: differences from a baseline, paired by seed, and ranges of ranks.

Holm's correction accompanies the plain interval, because many methods are tested. Ranks are ranges,
because an order of means shows little if intervals overlap. A run is paired with the baseline run
of equal seed, commit, processor and version of JAX. Such runs have equal prompts and random
numbers. On another processor or version, numbers are rounded differently from the first step on. A
run without a pair is in no difference and no rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from rlvr_jax.analysis.boundary import paired_problems
from rlvr_jax.analysis.seed_statistics import Interval, mean_interval

SEEDS_OF_A_CLAIM = 10
"""Pairs of runs behind which a difference may be spoken of: what looks apart with fewer was chosen
among many for that."""

_DRAWS = 10_000
_KEY = 20_240_817  # of the bootstrap, so that a page is reproducible


@dataclass(frozen=True)
class Standing:
    """One entry of a board, by one metric.

    Fields:
      entry: its name.
      values: mean over seeds with the half-width of its 95 % t-interval.
      difference: difference from the baseline, over the paired seeds.
      p_value: p-value of a paired t-test that the difference is 0. NaN with fewer than two pairs,
        or if all differences are equal.
      holm: p_value with Holm's correction for all entries of the board; NaN if p_value is NaN.
      ranks: lowest and highest rank in 95 % of resamples of the seeds; 1 is best. None: the entry
        lacks a paired seed that most entries have.
    """

    entry: str
    values: Interval
    difference: Interval
    p_value: float
    holm: float
    ranks: tuple[int, int] | None

    @property
    def pairs(self) -> int:
        """Number of paired runs; 0 for the baseline."""
        return len(self.difference.values)

    @property
    def looks_apart(self) -> bool:
        """Whether the difference is significant after the correction."""
        return self.holm < 0.05

    @property
    def is_apart(self) -> bool:
        """Whether the difference is significant, and has enough seeds for a sentence."""
        return self.looks_apart and self.pairs >= SEEDS_OF_A_CLAIM


def standings(rows: Sequence[Mapping[str, Any]], number: str, baseline: str) -> list[Standing]:
    """Standings of a board's entries, best mean first. Failed runs are left out.

    Args:
      rows: lines of `results.jsonl`, of one board.
      number: metric of `end`, higher is better, for example "pass@32".
      baseline: the entry that all others are compared with.
    """
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        if "end" in row and number in row["end"]:
            found.setdefault(row["entry"], {})[row["seed"]] = row
    if baseline not in found:
        raise ValueError(f"standings: baseline must be one of {sorted(found)}, got {baseline!r}")
    beside = found[baseline]
    paired = {
        entry: {
            seed: row
            for seed, row in sorted(runs.items())
            if seed in beside and _alike(row, beside[seed])
        }
        for entry, runs in found.items()
    }
    gaps = {
        entry: [row["end"][number] - beside[seed]["end"][number] for seed, row in runs.items()]
        for entry, runs in paired.items()
        if entry != baseline
    }
    p_values = {entry: _paired_p(differences) for entry, differences in gaps.items()}
    corrected = holm(p_values)
    values, ranked = (
        {
            entry: {seed: row["end"][number] for seed, row in runs.items()}
            for entry, runs in selected.items()
        }
        for selected in (found, paired)
    )
    ranks = rank_ranges({entry: own for entry, own in ranked.items() if own})
    standing = [
        Standing(
            entry,
            mean_interval([own[seed] for seed in sorted(own)]),
            mean_interval(gaps.get(entry, [])),
            p_values.get(entry, float("nan")),
            corrected.get(entry, float("nan")),
            ranks.get(entry),
        )
        for entry, own in values.items()
    ]
    return sorted(standing, key=lambda each: -each.values.mean)


def chosen_entries(rows: Sequence[Mapping[str, Any]], number: str) -> dict[str, str]:
    """The entry of each method with the best mean over seeds; of equal ones, the first.

    Args:
      rows: lines of `results.jsonl`, of one board whose entries are values of settings.
      number: metric of `end`, higher is better.
    Returns:
      Entry by method. An entry without all seeds of its method is not chosen: a run failed or is
      missing.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in rows:
        if "end" in row and number in row["end"]:
            own = found.setdefault(row["method"], {}).setdefault(row["entry"], {})
            own[row["seed"]] = row["end"][number]
    chosen = {}
    for method, entries in found.items():
        seeds = {seed for own in entries.values() for seed in own}
        whole = {entry: own for entry, own in entries.items() if own.keys() == seeds}
        means = {entry: float(np.mean(list(own.values()))) for entry, own in whole.items()}
        if means:
            chosen[method] = max(means, key=lambda entry: means[entry])
    return chosen


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values with Holm's correction (1979), which bounds the probability of any false rejection.
    A NaN is not a test: it stays, and is not counted."""
    tested = [name for name, p in p_values.items() if not np.isnan(p)]
    corrected = paired_problems.holm([p_values[name] for name in tested]).tolist()
    return {**p_values, **dict(zip(tested, corrected, strict=True))}


def rank_ranges(values: Mapping[str, Mapping[int, float]]) -> dict[str, tuple[int, int]]:
    """Ranges of the ranks of means under resampled seeds; 1 is the highest mean.

    Seeds are resampled with replacement, equally for all entries, because entries share prompts and
    random numbers.

    Args:
      values: value by entry and seed. Entries that lack a seed that most entries have are left out.
    Returns:
      (lowest, highest) rank in 95 % of the resamples, by entry; empty with fewer than two seeds.
    """
    counts: dict[int, int] = {}
    for own in values.values():
        for seed in own:
            counts[seed] = counts.get(seed, 0) + 1
    seeds = sorted(seed for seed, count in counts.items() if count > len(values) / 2)
    whole = {entry: own for entry, own in values.items() if all(seed in own for seed in seeds)}
    if len(seeds) < 2 or not whole:
        return {}
    table = np.array([[own[seed] for seed in seeds] for own in whole.values()])
    draws = np.random.default_rng(_KEY).integers(len(seeds), size=(_DRAWS, len(seeds)))
    means = table[:, draws].mean(-1)
    ranks = stats.rankdata(-means, axis=0)
    low = np.quantile(ranks, 0.025, axis=1, method="lower")
    high = np.quantile(ranks, 0.975, axis=1, method="higher")
    return {
        entry: (int(np.floor(a)), int(np.ceil(b)))
        for entry, a, b in zip(whole, low, high, strict=True)
    }


def prediction_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the value of one more run: mean ± t(n - 1) · s · √(1 + 1/n).

    Args:
      values: values of runs with different seeds.
    Returns:
      Ends of the interval; infinite with fewer than two values.
    """
    known = mean_interval(values)
    if len(known.values) < 2:
        return -np.inf, np.inf
    # The half-width is the one of the mean.
    reach = known.half_width * np.sqrt(len(known.values) + 1)
    return known.mean - reach, known.mean + reach


def _alike(row: Mapping[str, Any], base: Mapping[str, Any]) -> bool:
    same = all(row[name] == base[name] for name in ("commit", "processor"))
    return same and row["versions"]["jax"] == base["versions"]["jax"]


def _paired_p(differences: Sequence[float]) -> float:
    # Equal up to the rounding of a subtraction.
    if len(differences) < 2 or np.ptp(differences) < 1e-9:
        return float("nan")
    return float(stats.ttest_1samp(differences, 0.0).pvalue)
