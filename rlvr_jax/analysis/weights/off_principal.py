"""Whether an update avoids the principal directions and entries of a matrix.

Zhu et al. 2025, "The Path Not Taken: RLVR Provably Learns Off the Principals",
https://arxiv.org/abs/2511.08567 (a reconstruction; thresholds and ranks there are not known). The
paper claims that changed entries are on the principal mask less often than by chance, and on the
low-magnitude mask more often. Spectra and angles hardly change. SFT has the opposite effect.

bfloat16 hides changes below 2⁻⁹ of an entry, mostly those of large weights. A part of a low overlap
is therefore rounding. Compare with `random_update` of equal size and dtype, and with float32 master
weights, before you draw conclusions about learning.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlvr_jax.analysis.weights.geometry import (
    changed_entries,
    decompose,
    effective_rank,
    inside,
    largest_entries,
    reconstruction,
    smallest_entries,
    spectral_shift,
)


class OffPrincipal(NamedTuple):
    """One matrix before and after.

    Fields:
      sparsity: fraction of the entries that did not change.
      spectral_shift: relative change of the singular values.
      update_rank: effective rank of the update.
      angles_left, angles_right: [k] radians, ascending.
      overlap: fraction of the changed entries on the principal mask. `chance` is the fraction of
        all entries on this mask.
      overlap_low: fraction of the changed entries on the low-magnitude mask.
      mass_on_principal, mass_on_low: fractions of ‖ΔW‖² on the two masks.
      principal, changed: bool, the masks.
    """

    sparsity: float
    spectral_shift: float
    update_rank: float
    angles_left: np.ndarray
    angles_right: np.ndarray
    overlap: float
    chance: float
    overlap_low: float
    mass_on_principal: float
    mass_on_low: float
    principal: np.ndarray
    changed: np.ndarray


def off_principal(
    before: ArrayLike,
    after: ArrayLike,
    rank: int = 3,
    density: float = 0.2,
    tolerance: float = 1e-3,
) -> OffPrincipal:
    """Compares a matrix before and after training.

    Args:
      before, after: [M, N], values of the files (for example of a bfloat16 checkpoint).
      rank: k, rank of the subspaces and of the reconstruction.
      density: α, fraction of the entries on each mask.
      tolerance: η, relative change up to which an entry counts as unchanged. The defaults of k, α
        and η are ours.
    """
    before, after = np.asarray(before, float), np.asarray(after, float)
    old, new = decompose(before), decompose(after)
    update = after - before
    energy = update**2
    principal = largest_entries(reconstruction(old, rank), density)
    low = smallest_entries(before, density)
    changed = changed_entries(before, after, tolerance)
    left, right = old.angles(new, rank)
    return OffPrincipal(
        sparsity=float(1 - changed.mean()),
        spectral_shift=spectral_shift(old.values, new.values),
        update_rank=effective_rank(np.linalg.svd(update, compute_uv=False)),
        angles_left=left,
        angles_right=right,
        overlap=inside(principal, changed),
        chance=float(principal.mean()),
        overlap_low=inside(low, changed),
        mass_on_principal=inside(principal, energy),
        mass_on_low=inside(low, energy),
        principal=principal,
        changed=changed,
    )


def random_update(before: ArrayLike, after: ArrayLike, seed: int) -> np.ndarray:
    """W₀ plus a Gaussian update of equal norm: the control for the effect of rounding.

    Round it to the dtype of the checkpoint before you compare it.
    """
    before = np.asarray(before, float)
    noise = np.random.default_rng(seed).normal(size=before.shape)
    size = np.linalg.norm(np.asarray(after, float) - before)
    return before + noise * (size / np.linalg.norm(noise))
