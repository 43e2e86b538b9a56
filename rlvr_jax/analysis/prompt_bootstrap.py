"""Bootstrap intervals over held-out prompts and seeds.

The t-intervals of a comparison cover the seeds, but not the choice of prompts, because all seeds
have equal prompts. Here prompts are resampled with replacement, equally for all seeds and for both
methods of a difference. Several seeds are also resampled. With few seeds a bootstrap interval is
too narrow. With one seed it covers the prompts only.
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
      mean: weighted mean over prompts, plain mean over seeds.
      low, high: 2.5 % and 97.5 % quantiles over the resamples.
      seeds, prompts: numbers of seeds and prompts.
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
    """The interval of a mean. For a difference of methods, pass paired differences.

    Args:
      values: [S, P], value of each seed and prompt.
      weights: [P], weights of the prompts, ≥ 0.
      rounds: number of resamples.
      seed: of the resamples.
    Raises:
      ValueError: there is no seed or prompt, shapes differ, values are not finite, weights are
        negative, infinite or all 0, or rounds is below 1.
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
        raise ValueError(
            f"bootstrap_mean: weights must be at least 0 with a positive sum, got {weights}"
        )
    if not rounds >= 1:
        raise ValueError(f"bootstrap_mean: rounds must be at least 1, got {rounds}")
    seeds, prompts = values.shape
    random = np.random.default_rng(seed)
    times = random.multinomial(prompts, np.full(prompts, 1 / prompts), size=rounds)
    chosen = random.multinomial(seeds, np.full(seeds, 1 / seeds), size=rounds) / seeds
    own = times * weights
    # A resample whose weights are all 0 has no mean.
    total = own.sum(axis=1)
    means = np.einsum("rs,sp,rp->r", chosen, values, own)[total > 0] / total[total > 0]
    low, high = np.quantile(means, [0.025, 0.975])
    mean = values.mean(axis=0) @ weights / weights.sum()
    return PromptInterval(float(mean), float(low), float(high), seeds, prompts)


def estimates(counts: Sequence[Mapping[str, Any]], k: int) -> np.ndarray:
    """pass@k of each prompt in each of several evaluations, [S, P].

    Args:
      counts: lines of `held_out.jsonl`.
    """
    if not counts:
        raise ValueError("estimates: counts must have an evaluation, got none")
    first = counts[0]["prompts"]
    if any(each["prompts"] != first for each in counts):
        raise ValueError("estimates: counts must be of the same prompts, got several sets")
    return np.stack([pass_at_k(each["n"], each["correct"], k) for each in counts])
