"""Intervals that cover the choice of held-out prompts, by resampling prompts and seeds.

The t-intervals of a comparison are over seeds, and all seeds have the same prompts. They do not
cover other prompts. Here prompts are resampled with replacement, the same for all seeds
and both methods of a difference, and seeds, if there are several, likewise. With few seeds the
interval is too narrow about these, as of any bootstrap; with one it is about prompts alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.boundary.pass_at_k import pass_at_k


@dataclass(frozen=True)
class PromptInterval:
    """A mean over seeds and prompts with its interval.

    Fields:
      mean: weighted over prompts, plain over seeds.
      low, high: 2.5 % and 97.5 % quantiles of the means of the resamples.
      seeds, prompts: how many it rests on.
    """

    mean: float
    low: float
    high: float
    seeds: int
    prompts: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap_mean(
    values: ArrayLike,
    weights: ArrayLike,
    rounds: int = 2000,
    seed: int = 0,
) -> PromptInterval:
    """The interval of a mean; for a difference, of paired differences.

    Args:
      values: [S, P], a number of each prompt for each seed.
      weights: [P], of the prompts, ≥ 0.
    Raises:
      ValueError: no seed or prompt, shapes that differ, values that are not finite, weights that
        are negative, infinite or all 0, or rounds below 1.
    """
    values, weights = np.asarray(values, float), np.asarray(weights, float)
    if values.ndim != 2 or not values.size or weights.shape != values.shape[1:]:
        raise ValueError(
            "bootstrap_mean: values must be [seeds, prompts] and weights [prompts], got"
            f" {values.shape} and {weights.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"bootstrap_mean: values must be finite, got {values}")
    if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
        raise ValueError(f"bootstrap_mean: weights must be at least 0 with a sum, got {weights}")
    if not rounds >= 1:
        raise ValueError(f"bootstrap_mean: rounds must be at least 1, got {rounds}")
    seeds, prompts = values.shape
    random = np.random.default_rng(seed)
    times = random.multinomial(prompts, np.full(prompts, 1 / prompts), size=rounds)
    chosen = random.multinomial(seeds, np.full(seeds, 1 / seeds), size=rounds) / seeds
    own = times * weights
    # A draw of none but prompts without weight says nothing.
    total = own.sum(axis=1)
    means = np.einsum("rs,sp,rp->r", chosen, values, own)[total > 0] / total[total > 0]
    low, high = np.quantile(means, [0.025, 0.975])
    mean = values.mean(axis=0) @ weights / weights.sum()
    return PromptInterval(float(mean), float(low), float(high), seeds, prompts)


def estimates(counts: Sequence[Mapping[str, Any]], k: int) -> np.ndarray:
    """pass@k of each prompt for each of several evaluations, [S, P].

    Args:
      counts: lines of `held_out.jsonl`.
    """
    if not counts:
        raise ValueError("estimates: counts must have an evaluation, got none")
    first = counts[0]["prompts"]
    if any(each["prompts"] != first for each in counts):
        raise ValueError("estimates: counts must be of the same prompts, got several sets")
    return np.stack([pass_at_k(each["n"], each["correct"], k) for each in counts])
