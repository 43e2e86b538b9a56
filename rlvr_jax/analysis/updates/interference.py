"""Interference: the effect of an update on one problem on the correct answers of the others.

Nguyen et al. 2025, "The Reasoning Boundary Paradox", https://arxiv.org/abs/2510.02230. One step on
a rollout (x, y) with advantage A changes a correct response y' to x', to first order, by

    Δ log π(y' | x') = η K A,        K = ⟨∇ log π(y' | x'), ∇ log π(y | x)⟩

    K_ij = η ⟨g_i, h_j⟩     g_i = 1/N Σ_n A_n ∇ mean-token-log π(y_n)
                            h_j the mean of that gradient over j's correct rollouts

Gradients are those of the last layer, logits = hidden · W, so no backward pass is needed: ∇_W log
π(y_t) = hidden_t (onehot_t - p_t)ᵀ. This is a proxy of the full kernel. Signs mostly agree,
magnitudes do not, and an optimizer with momentum has another effect. Token means are used, because
long responses would dominate sums. Common first words make all K positive: mask them if the
question is about content.

Winner takes all: the slope of the change of log π on log π before, over problems with a correct
response. It is positive if likely responses gained more than unlikely ones.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import binned_mean, log_softmax, row_mean


class Interference(NamedTuple):
    """Influence of problems on each other.

    Fields:
      influence: [G, G], K_ij, the effect of a step on i on the correct responses of j. It is 0 if i
        has no advantage, or j no correct rollout.
      negative_fraction: fraction of pairs i ≠ j with K_ij < 0. Pairs have an advantage in i and a
        correct rollout in j; 0 without such pairs.
      mean_off_diagonal: mean K_ij of these pairs.
      self_influence: [G], K_ii.
    """

    influence: np.ndarray
    negative_fraction: float
    mean_off_diagonal: float
    self_influence: np.ndarray


def row_gradients(
    hidden: ArrayLike, logits: ArrayLike, tokens: ArrayLike, mask: ArrayLike
) -> np.ndarray:
    """Gradient of each row's mean token log-prob by the last layer, [B, D, V].

    The result has B·D·V numbers. For a large vocabulary pass one group at a time, or only the
    columns of the candidates.

    Args:
      hidden: [B, T, D], the input of the last layer.
      logits: of the last layer, [B, T, V].
      tokens: int [B, T].
      mask: bool [B, T].
    """
    error = -np.exp(log_softmax(logits))
    rows, width = np.indices(np.shape(tokens))
    error[rows, width, tokens] += 1
    mask = np.asarray(mask, bool)
    weight = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    # One row at a time: the sum over tokens is a product of two matrices.
    return np.stack(
        [(h * w[:, None]).T @ e for h, w, e in zip(np.asarray(hidden), weight, error, strict=True)]
    )


def interference(
    gradients: ArrayLike,
    advantage: ArrayLike,
    correct: ArrayLike,
    group: ArrayLike,
    rate: float = 1,
) -> Interference:
    """Compares the step on each problem with the correct answers of every problem.

    Args:
      gradients: [B, …], gradient of each row's mean token log-prob.
      advantage: of each row, [B].
      correct: bool [B].
      group: int [B], number of the row's problem, 0 … G - 1.
      rate: size of the step (η).
    """
    a, correct, group = np.asarray(advantage, float), np.asarray(correct, bool), np.asarray(group)
    rows = np.asarray(gradients, float).reshape(len(a), -1)
    member = group[None] == np.arange(group.max() + 1)[:, None]
    number, hits = member.sum(axis=1), (member & correct).sum(axis=1)
    step = (member * a) @ rows / np.maximum(number, 1)[:, None]
    watched = (member & correct) @ rows / np.maximum(hits, 1)[:, None]
    influence = rate * step @ watched.T
    trained = (member & (a != 0)).any(axis=1)
    pairs = trained[:, None] & (hits > 0) & ~np.eye(len(number), dtype=bool)
    values = influence[pairs]
    return Interference(
        influence,
        float(np.mean(values < 0)) if values.size else 0.0,
        float(np.mean(values)) if values.size else 0.0,
        np.diag(influence).copy(),
    )


def right_answer_logp(
    logp: ArrayLike, mask: ArrayLike, correct: ArrayLike, group: ArrayLike
) -> np.ndarray:
    """Mean token log-prob of the correct rollouts of each problem, [G] nats; 0 without any.

    Args:
      logp: [B, T] nats.
      mask: bool [B, T].
      correct: bool [B].
      group: int [B], 0 … G - 1.
    """
    group, correct = np.asarray(group), np.asarray(correct, bool)
    return binned_mean(row_mean(logp, mask)[correct], group[correct], group.max() + 1)


def winner_slope(before: ArrayLike, change: ArrayLike, watched: ArrayLike) -> float:
    """Least-squares slope of the change of log π on log π before, over the selected problems.

    0 with fewer than two problems, or if all values before are equal.
    """
    watched = np.asarray(watched, bool)
    x, y = np.asarray(before, float)[watched], np.asarray(change, float)[watched]
    spread = x - x.mean() if len(x) > 1 else np.zeros(0)
    squares = np.sum(spread**2)
    return float(np.sum(spread * (y - y.mean())) / squares) if squares > 0 else 0.0


def keep_hard(pass_rate: ArrayLike, easy: float = 0.5) -> np.ndarray:
    """Problems for further training, bool [G]: those with a pass rate below `easy`.

    A variant of SELF's selection, which selects problems that the base's greedy response fails.
    """
    return np.asarray(pass_rate, float) < easy
