"""Formats: whether one form of the responses takes over, and whether it was the best one.

Zhao et al. 2025, "Echo Chamber", https://arxiv.org/abs/2504.07912, finds that RL converges to one
of the output distributions of pretraining. The measures are ours (the abstract defines none), of
the fractions q before and p after:

    total variation ½ Σ |p - q|        Jensen-Shannon divergence (nats)        entropies
    between formats: Σ (p_k - q_k) acc_k, the gain that the change of format alone explains

A rule determines the format of a response without its correctness; "none of them" is also a format.
One format can take over within tens of steps: count from step 0, over hundreds of rollouts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rlvr_jax.analysis.arrays import histogram_entropy


class FormatShift(NamedTuple):
    """Changes of the fractions of K formats.

    Fields:
      fraction_before, fraction_after: [K], fractions of the formats.
      total_variation, js: total variation and Jensen-Shannon divergence of both.
      entropy_before, entropy_after: entropies of the fractions, nats.
      dominant, dominance: number and fraction of the most frequent format after training.
      same_winner: whether this format was also the most frequent one before.
      best_format_won: whether this format had the best score before.
      between_formats: gain of accuracy that the change of the fractions explains.
    """

    fraction_before: np.ndarray
    fraction_after: np.ndarray
    total_variation: float
    js: float
    entropy_before: float
    entropy_after: float
    dominant: int
    dominance: float
    same_winner: bool
    best_format_won: bool
    between_formats: float


def format_fractions(formats: ArrayLike, number: int) -> np.ndarray:
    """Fraction of each format, [K]; `formats` has the number of the format of each rollout, int
    [B]."""
    return np.bincount(np.asarray(formats), minlength=number) / max(np.size(formats), 1)


def format_shift(
    before: ArrayLike, after: ArrayLike, accuracy: ArrayLike, score_before: ArrayLike
) -> FormatShift:
    """Compares the formats of two policies.

    Args:
      before, after: fractions of the formats, [K].
      accuracy: [K], accuracy of each format after training (`binned_mean`).
      score_before: [K], score of each format before training.
    """
    q, p = np.asarray(before, float), np.asarray(after, float)
    for name, fractions in (("before", q), ("after", p)):
        if not np.isclose(fractions.sum(), 1):
            raise ValueError(f"format_shift: {name} must sum to 1, got {fractions}")
    middle = (p + q) / 2
    js = np.sum(special.rel_entr(p, middle) + special.rel_entr(q, middle)) / 2
    dominant = int(np.argmax(p))
    return FormatShift(
        fraction_before=q,
        fraction_after=p,
        total_variation=float(np.abs(p - q).sum() / 2),
        js=float(js),
        entropy_before=histogram_entropy(q),
        entropy_after=histogram_entropy(p),
        dominant=dominant,
        dominance=float(p[dominant]),
        same_winner=int(np.argmax(q)) == dominant,
        best_format_won=int(np.argmax(score_before)) == dominant,
        between_formats=float(np.sum((p - q) * np.asarray(accuracy, float))),
    )
