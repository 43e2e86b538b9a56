"""Changes of a matrix by training and over checkpoints: sparsity, rank, linearity.

For W₀ and W₁, with the singular triples σ_j, u_j, v_j of D = W₁ - W₀:

    update sparsity     fraction of entries that are equal once stored (bfloat16 rounds to nearest)
    rank energy         cumulative σ_j² / Σ σ²; stable rank Σ σ² / σ₁²; rank-1 fraction σ₁ / ‖D‖
    rank-k replacement  W₀ + a (‖D‖ / ‖D_k‖) D_k: the top part with the norm of the whole
    linearity           R² of a line through F_s = σ₁u₁v₁ᵀ of W_s - W₀ over the steps s

Zhu et al. 2025, https://arxiv.org/abs/2511.08567 (sparsity, angles, masks); Cai et al. 2025,
https://arxiv.org/abs/2510.00553 and its code https://github.com/caiyuchen-ustc/Alpha-RL (rank,
linearity); Rajani et al. 2025, https://arxiv.org/abs/2507.10616 (which matrices move). Products
u₁v₁ᵀ need no alignment of signs. Embeddings and norms do not count as matrices here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.weights.geometry import (
    changed_entries,
    decompose,
    inside,
    largest_entries,
    reconstruction,
    replacement,
    smallest_entries,
    spectral_shift,
)


class Sparsity(NamedTuple):
    """Effect of storage on an update: the entries that remain changed.

    Fields:
      tolerant, exact: fractions of the entries that are equal within a relative tolerance, and
        exactly.
      density: 1 - tolerant.
      principal_overlap, low_magnitude_overlap: fractions of the changed entries on the masks of W₀
        before storage. By chance they are the fractions of all entries on the masks.
    """

    tolerant: float
    exact: float
    density: float
    principal_overlap: float
    low_magnitude_overlap: float


class UpdateSpectrum(NamedTuple):
    """The size and shape of an update.

    Fields:
      relative_norm: ‖D‖ / ‖W₀‖.
      spectral_shift: relative change of the singular values of W₀.
      stable_rank, rank1_fraction: of D.
      angles_left, angles_right: [r] degrees, ascending, between the top subspaces of W₀ and W₁.
      rank_energy: [min(M, N)], cumulative energy.
      replacement: [M, N], the rank-1 part of D with the norm of D.
    """

    relative_norm: float
    spectral_shift: float
    stable_rank: float
    rank1_fraction: float
    angles_left: np.ndarray
    angles_right: np.ndarray
    rank_energy: np.ndarray
    replacement: np.ndarray


class Linearity(NamedTuple):
    """Linearity of the top component over checkpoints.

    Fields:
      sigma: [S], top singular value at each checkpoint.
      rank1_energy: [S], σ₁² / Σ σ².
      r_squared: R² of the least-squares line over the steps, over all entries together.
      extrapolation_error: ‖line of the first part at the last step - F_S‖ / ‖F_S‖.
    """

    sigma: np.ndarray
    rank1_energy: np.ndarray
    r_squared: float
    extrapolation_error: float


def to_bfloat16(matrix: ArrayLike) -> np.ndarray:
    """The values after storage in bfloat16 (nearest, ties to even), as float64."""
    return np.asarray(matrix, float).astype(ml_dtypes.bfloat16).astype(float)


def stored_sparsity(
    before: ArrayLike,
    after: ArrayLike,
    rank: int = 3,
    density: float = 0.3,
    tolerance: float = 1e-3,
) -> Sparsity:
    """Compares an update before and after storage in bfloat16.

    Args:
      before, after: [M, N], before storage.
      rank: r, rank of the reconstruction of the principal mask.
      density: α, fraction of the entries on each mask.
      tolerance: η. Below 2⁻⁸ it is the exact comparison. The defaults are ours.
    """
    before = np.asarray(before, float)
    old, new = to_bfloat16(before), to_bfloat16(after)
    changed = changed_entries(old, new, tolerance)
    principal = largest_entries(reconstruction(decompose(before), rank), density)
    return Sparsity(
        float(1 - changed.mean()),
        float(np.mean(old == new)),
        float(changed.mean()),
        inside(principal, changed),
        inside(smallest_entries(before, density), changed),
    )


def update_spectrum(before: ArrayLike, after: ArrayLike, rank: int = 3) -> UpdateSpectrum:
    """Computes spectrum, rank and angles of an update.

    Args:
      rank: r, rank of the compared subspaces.
    """
    before, after = np.asarray(before, float), np.asarray(after, float)
    update = after - before
    if not update.any():
        raise ValueError("update_spectrum: after must differ from before, got equal matrices")
    old, new, parts = decompose(before), decompose(after), decompose(update)
    energy = np.cumsum(parts.values**2)
    norm = float(np.sqrt(energy[-1]))
    left, right = old.angles(new, rank)
    return UpdateSpectrum(
        relative_norm=norm / float(np.linalg.norm(before)),
        spectral_shift=spectral_shift(old.values, new.values),
        stable_rank=float(energy[-1] / parts.values[0] ** 2),
        rank1_fraction=float(parts.values[0] / norm),
        angles_left=np.degrees(left),
        angles_right=np.degrees(right),
        rank_energy=energy / energy[-1],
        replacement=replacement(parts, 1),
    )


def linearity(updates: Sequence[ArrayLike], steps: ArrayLike, first: int) -> Linearity:
    """Fits a line through the top components of a run's checkpoints.

    Args:
      updates: W_s - W₀ of S checkpoints, [M, N] each.
      steps: [S], ascending.
      first: number of checkpoints that extrapolate the last one, 2 ≤ first < S.
    """
    steps = np.asarray(steps, float)
    if not 2 <= first < len(steps):
        raise ValueError(f"linearity: first must be in [2, {len(steps) - 1}], got {first}")
    for number, update in enumerate(updates):
        if not np.any(update):
            raise ValueError(f"linearity: updates must not be zero, got zeros at position {number}")
    parts = [decompose(update) for update in updates]
    tops = np.stack([reconstruction(each, 1).ravel() for each in parts])
    fitted = _line(steps, tops, steps)
    left, spread = np.sum((tops - fitted) ** 2), np.sum((tops - tops.mean(axis=0)) ** 2)
    ahead = _line(steps[:first], tops[:first], steps[-1:])[0]
    return Linearity(
        sigma=np.array([each.values[0] for each in parts]),
        rank1_energy=np.array([each.values[0] ** 2 / np.sum(each.values**2) for each in parts]),
        r_squared=float(1 - left / spread),
        extrapolation_error=float(np.linalg.norm(ahead - tops[-1]) / np.linalg.norm(tops[-1])),
    )


def _line(steps: np.ndarray, values: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Least-squares lines of the columns of [S, E] over the steps, at other steps."""
    centred = steps - steps.mean()
    slope = centred @ (values - values.mean(axis=0)) / np.sum(centred**2)
    return values.mean(axis=0) + (where - steps.mean())[:, None] * slope
