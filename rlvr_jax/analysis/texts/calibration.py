"""Calibration: whether the confidence of a rollout equals its probability to be correct.

For confidences c, outcomes o in {0, 1}, and K bins with count n_k, mean outcome acc_k and mean
confidence conf_k:

    ECE = Σ n_k / B |acc_k - conf_k|        MCE = max |acc_k - conf_k| over bins that are not empty
    adaptive ECE: mean of |acc - conf| over K parts of (nearly) equal size, sorted by confidence
    Brier = mean (c - o)²        NLL = -mean log-likelihood, c clipped to [ε, 1 - ε]
    AUROC = P(c of a correct one > c of an incorrect one) + ½ P(equal); ½ without both kinds
    overconfidence = mean c - mean o

ECE is biased upward if bins have few rollouts: report B and K with it. AUROC depends only on the
ranking. The geometric mean of token probabilities is near 1 for all long texts: compare it at
similar lengths. A vote fraction counts the rollout itself, and is at least 1 / N. The definitions
are those of textbooks. Ties of the adaptive form keep the order of the rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from rlvr_jax.analysis.arrays import binned_mean, columns, row_mean


class Calibration(NamedTuple):
    """Measures of the relation between confidence and outcome.

    Fields:
      bin_count, bin_accuracy, bin_confidence: [K], the reliability table; 0 in empty bins.
      ece, mce, adaptive_ece, brier, nll, auroc, overconfidence: see the module.
    """

    bin_count: np.ndarray
    bin_accuracy: np.ndarray
    bin_confidence: np.ndarray
    ece: float
    mce: float
    adaptive_ece: float
    brier: float
    nll: float
    auroc: float
    overconfidence: float


class Votes(NamedTuple):
    """Number of rollouts of a prompt that have the answer of a row.

    Fields:
      count, size: int [B], rollouts with an equal answer, and all rollouts of the prompt.
    """

    count: np.ndarray
    size: np.ndarray

    @property
    def confidence(self) -> np.ndarray:
        """The fraction, [B]."""
        return self.count / self.size

    def bins(self, number: int) -> np.ndarray:
        """Bins of equal width by integer arithmetic, because many fractions are exactly on an
        edge."""
        return np.minimum(self.count * number // self.size, number - 1)


def token_confidence(logp: ArrayLike, mask: ArrayLike) -> np.ndarray:
    """Geometric mean of the token probabilities, exp(mean log p), [B]."""
    return np.exp(row_mean(logp, mask))


def votes(answer: ArrayLike, group: ArrayLike) -> Votes:
    """Counts the votes for each row's answer among the rows of its group, both int [B]."""
    pairs = np.stack([np.asarray(group), np.asarray(answer)], axis=1)
    _, own, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    _, place, size = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    return Votes(count[own.ravel()], size[place])


def equal_width_bins(confidence: ArrayLike, number: int) -> np.ndarray:
    """min(⌊c K⌋, K - 1), int [B]."""
    return np.minimum((np.asarray(confidence, float) * number).astype(int), number - 1)


def calibration(
    confidence: ArrayLike,
    outcome: ArrayLike,
    bins: int = 10,
    places: ArrayLike | None = None,
    epsilon: float = 1e-12,
) -> Calibration:
    """Measures the calibration of B rollouts.

    Args:
      confidence: stated probability of a correct answer, [B], in [0, 1].
      outcome: whether the answer is correct, [B], 0 or 1.
      bins: K, number of bins.
      places: int [B], the bin of each row; None: bins of equal width, from the confidences.
      epsilon: ε, bound of the clip in the NLL.
    """
    c, o = columns("calibration", "B", 1, confidence=confidence, outcome=outcome)
    if not ((c >= 0) & (c <= 1)).all():
        raise ValueError(f"calibration: confidence must be in [0, 1], got {c}")
    if not np.isin(o, (0, 1)).all():
        raise ValueError(f"calibration: outcome must be 0 or 1, got {o}")
    places = equal_width_bins(c, bins) if places is None else np.asarray(places)
    count = np.bincount(places, minlength=bins)
    accuracy, mean = (binned_mean(values, places, bins) for values in (o, c))
    gap = np.abs(accuracy - mean)
    order = np.argsort(c, kind="stable")
    # With fewer rollouts than parts, some parts are empty.
    parts = [part for part in np.array_split(order, bins) if len(part)]
    inside = np.clip(c, epsilon, 1 - epsilon)
    return Calibration(
        bin_count=count,
        bin_accuracy=accuracy,
        bin_confidence=mean,
        ece=float(np.sum(count * gap) / len(c)),
        mce=float(gap[count > 0].max()),
        adaptive_ece=float(np.mean([abs(o[part].mean() - c[part].mean()) for part in parts])),
        brier=float(np.mean((c - o) ** 2)),
        nll=float(-np.mean(o * np.log(inside) + (1 - o) * np.log1p(-inside))),
        auroc=_auroc(c, o > 0),
        overconfidence=float(c.mean() - o.mean()),
    )


def _auroc(confidence: np.ndarray, correct: np.ndarray) -> float:
    """AUROC from ranks, with mean ranks for ties."""
    number, others = int(correct.sum()), int((~correct).sum())
    if not number or not others:
        return 0.5
    rank = stats.rankdata(confidence)
    return float((rank[correct].sum() - number * (number + 1) / 2) / (number * others))
