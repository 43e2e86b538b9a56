"""One matrix before and after: spectrum, angles, masks and changed entries, in float64.

    spectral shift   ‖σ(W₁) - σ(W₀)‖₂ / ‖σ(W₀)‖₂
    principal angles between the top-r singular subspaces: atan2(sine, cosine) with the cosines the
                     singular values of U₀ᵀU₁ and the sines those of U₁ - U₀U₀ᵀU₁; an arccos of a
                     cosine near 1 keeps half the digits only
    principal mask   the largest entries in magnitude of the rank-r reconstruction of W₀
    changed          |w₁ - w₀| > tolerance · max(|w₀|, |w₁|); an exact zero is unchanged only if it
                     is still zero

Singular vectors of close singular values are arbitrary, so subspaces are compared. The top-r
subspace is ill defined if σ_r ≈ σ_{r+1}.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.arrays import fraction_of as ratio, histogram_entropy


class Decomposition(NamedTuple):
    """W = U diag(σ) Vᵀ; columns of U and rows of Vᵀ are ordered by falling σ."""

    left: np.ndarray
    values: np.ndarray
    right: np.ndarray

    def angles(self, other: "Decomposition", rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Principal angles to the top subspaces of another matrix, left and right."""
        left = principal_angles(self.left[:, :rank], other.left[:, :rank])
        return left, principal_angles(self.right[:rank].T, other.right[:rank].T)


def decompose(matrix: ArrayLike) -> Decomposition:
    """The thin singular value decomposition in float64."""
    matrix = np.asarray(matrix, float)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"decompose: matrix must have two axes with entries, got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("decompose: matrix must be finite, got NaN or infinity")
    return Decomposition(*np.linalg.svd(matrix, full_matrices=False))


def reconstruction(parts: Decomposition, rank: int) -> np.ndarray:
    """The best approximation with the given rank."""
    return (parts.left[:, :rank] * parts.values[:rank]) @ parts.right[:rank]


def replacement(parts: Decomposition, rank: int, scale: float = 1.0) -> np.ndarray:
    """α (‖W‖ / ‖W_k‖) W_k: the rank-k part with the norm of W. α above 1 extrapolates."""
    norm, top = np.linalg.norm(parts.values), np.linalg.norm(parts.values[:rank])
    return reconstruction(parts, rank) * (scale * norm / top)


def spectral_shift(before: ArrayLike, after: ArrayLike) -> float:
    """‖σ₁ - σ₀‖ / ‖σ₀‖ of two descending lists of singular values; 0 if both are 0."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    moved, size = np.linalg.norm(after - before), np.linalg.norm(before)
    if size == 0:
        return 0.0 if moved == 0 else float("inf")
    return float(moved / size)


def principal_angles(before: ArrayLike, after: ArrayLike) -> np.ndarray:
    """Principal angles between two subspaces, [r] radians, ascending.

    Args:
      before, after: [D, r], orthonormal columns.
    """
    before, after = np.asarray(before, float), np.asarray(after, float)
    common = before.T @ after
    cosines = np.linalg.svd(common, compute_uv=False)
    sines = np.sort(np.linalg.svd(after - before @ common, compute_uv=False))
    return np.arctan2(sines, cosines)


def largest_entries(matrix: ArrayLike, fraction: float) -> np.ndarray:
    """The round(fraction · size) entries of largest magnitude, bool of the matrix's shape."""
    return _extreme(-np.abs(np.asarray(matrix, float)), fraction)


def smallest_entries(matrix: ArrayLike, fraction: float) -> np.ndarray:
    """The round(fraction · size) entries of smallest magnitude, bool of the matrix's shape."""
    return _extreme(np.abs(np.asarray(matrix, float)), fraction)


def changed_entries(before: ArrayLike, after: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
    """The changed entries, bool of the matrix's shape. With tolerance 0, all that are not equal."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    bound = tolerance * np.maximum(np.abs(before), np.abs(after))
    return np.abs(after - before) > bound


def inside(mask: ArrayLike, weights: ArrayLike) -> float:
    """Fraction of the sum of the values that is on a mask; 0 if the sum is 0."""
    weights = np.asarray(weights, float)
    return ratio(weights[np.asarray(mask, bool)].sum(), weights.sum())


def effective_rank(values: ArrayLike) -> float:
    """exp of the entropy of the normalized squared singular values; 0 for a matrix of zeros."""
    energy = np.asarray(values, float) ** 2
    return math.exp(histogram_entropy(energy)) if energy.any() else 0.0


def _extreme(keys: np.ndarray, fraction: float) -> np.ndarray:
    """The entries with the smallest keys; of equal ones, the first."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"largest_entries: fraction must be in [0, 1], got {fraction}")
    number = round(fraction * keys.size)
    mask = np.zeros(keys.size, bool)
    mask[np.argsort(keys, axis=None, kind="stable")[:number]] = True
    return mask.reshape(keys.shape)
