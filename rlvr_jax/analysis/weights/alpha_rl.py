"""Predicts the weights of a later checkpoint from the rank-1 part of early ones and their scores.

Cai et al. 2025, "On Predictability of Reinforcement Learning Dynamics for Large Language Models",
https://arxiv.org/abs/2510.00553, code https://github.com/caiyuchen-ustc/Alpha-RL. For every matrix
ΔW_t = W_t - W₀ = U S Vᵀ and a_t = σ₁u₁, with the sign aligned with the checkpoint before:

    PLS with one component of {a_t} on the scores {y_t} (both standardised, ddof 1):
        w ∝ Xᵀy,   t = X w,   loading p = Xᵀt / tᵀt,   y ≈ m t + b
    at a target score y*:  t* = (y* - b) / m,   â = t* p · std + mean,   update â v₁ᵀ

`geometry.replacement` tests whether rank 1 is enough: W₀ + α (‖ΔW‖ / ‖ΔW₁‖) ΔW₁.

The released code adds the prediction to the checkpoint that it loads, which counts the old rank-1
part twice. Here the update is added to W₀. The score saturates and the line does not, so a small m
leads to huge steps: `largest` bounds ‖â‖ in units of the last ‖a_t‖. The method applies to
attention and MLP matrices only.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.weights.geometry import decompose


class RankOneSeries(NamedTuple):
    """The rank-1 parts of a run's updates.

    Fields:
      left: [K, M], σ₁u₁ with aligned signs. right: [K, N], v₁ with the sign of u₁.
      singular_values: [K, min(M, N)].
      energy: [K], σ₁² / Σ σ².
    """

    left: np.ndarray
    right: np.ndarray
    singular_values: np.ndarray
    energy: np.ndarray


class Prediction(NamedTuple):
    """Predictions of the line through the scores.

    Fields:
      update: [M, N], to be added to W₀. vector: [M], â.
      scores: [K], t. weights, loadings: [M], w and p.
      r_squared: R² of the line of the scores y on t; NaN if the scores are constant.
      capped: whether `largest` bounded ‖â‖.
    """

    update: np.ndarray
    vector: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    loadings: np.ndarray
    r_squared: float
    capped: bool


def rank_one_series(updates: Sequence[ArrayLike]) -> RankOneSeries:
    """Computes the rank-1 part of each update, with aligned signs.

    The largest component of the first one, in magnitude, is positive. The prediction does not
    depend on this choice.

    Args:
      updates: K matrices W_t - W₀, [M, N], in the order of training.
    """
    if not len(updates):
        raise ValueError("rank_one_series: updates must hold a checkpoint, got none")
    left, right, values = [], [], []
    for number, update in enumerate(updates):
        if not np.any(update):
            raise ValueError(
                f"rank_one_series: updates must not be zero, got zeros as number {number}"
            )
        parts = decompose(update)
        a, v = parts.left[:, 0] * parts.values[0], parts.right[0]
        sign = a @ left[-1] if left else a[np.argmax(np.abs(a))]
        if sign < 0:
            a, v = -a, -v
        left.append(a)
        right.append(v)
        values.append(parts.values)
    squares = np.array(values) ** 2
    energy = squares[:, 0] / squares.sum(axis=1)
    return RankOneSeries(np.array(left), np.array(right), np.array(values), energy)


def predict_update(
    series: RankOneSeries, scores: ArrayLike, target: float, largest: float = np.inf
) -> Prediction:
    """Extrapolates the rank-1 part to a target score.

    Args:
      series: rank-1 parts of the checkpoints, in order.
      scores: y, [K], accuracies of the checkpoints.
      target: accuracy to extrapolate to (y*).
      largest: bound of ‖â‖ in units of the last ‖a_t‖; inf: no bound, as in the released code.
    """
    a, y = series.left, np.asarray(scores, float)
    if y.shape != (len(a),) or len(a) < 2:
        raise ValueError(
            f"predict_update: scores must be {len(a)}, one per checkpoint, and at least 2,"
            f" got {y.shape}"
        )
    if np.ptp(y) == 0:
        raise ValueError(f"predict_update: scores must differ, got {y[0]} at every checkpoint")
    mean, spread = a.mean(axis=0), a.std(axis=0, ddof=1)
    spread = np.where(spread > 0, spread, 1.0)
    x, standard = (a - mean) / spread, (y - y.mean()) / y.std(ddof=1)
    w = x.T @ standard
    w *= np.sign(w[np.argmax(np.abs(w))]) / np.linalg.norm(w)
    t = x @ w
    p = x.T @ t / (t @ t)
    slope, level = np.polyfit(t, y, 1)
    vector = (target - level) / slope * p * spread + mean
    size, bound = np.linalg.norm(vector), largest * np.linalg.norm(a[-1])
    if size > bound:
        vector = vector * (bound / size)
    left = np.sum((y - slope * t - level) ** 2)
    return Prediction(
        update=np.outer(vector, series.right[-1]),
        vector=vector,
        scores=t,
        weights=w,
        loadings=p,
        r_squared=float(1 - left / np.sum((y - y.mean()) ** 2)),
        capped=bool(size > bound),
    )
