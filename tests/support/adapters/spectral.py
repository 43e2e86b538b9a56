"""Spectra: the first row's logits are the matrix, the other rows make up a path."""

import golden_vectors as golden

from rlvr_jax.analysis.weights.geometry import decompose, reconstruction
from rlvr_jax.analysis.weights.spectral import (
    linearity,
    stored_sparsity,
    update_spectrum,
)


def outputs(case, hyper):
    data = golden.inputs(case)
    before, after = data["old_logits"][0], data["logits"][0]
    update, steps = after - before, range(1, hyper["steps"] + 1)
    small = before + hyper["shrink"] * update
    stored = stored_sparsity(before, small, hyper["rank"], hyper["density"], hyper["tol"])
    found = update_spectrum(before, after, hyper["rank"])
    noise = data["logits"] - data["old_logits"]
    main = reconstruction(decompose(update), 1)
    path = [3 * (s / hyper["steps"]) * main + 0.3 * noise[s] for s in steps]
    line = linearity(path, list(steps), first=3)
    return {
        "sparsity": stored.tolerant,
        "exact_sparsity": stored.exact,
        "update_density": stored.density,
        "principal_overlap": stored.principal_overlap,
        "low_magnitude_overlap": stored.low_magnitude_overlap,
        "relative_norm": found.relative_norm,
        "spectral_shift": found.spectral_shift,
        "stable_rank": found.stable_rank,
        "rank1_norm_share": found.rank1_fraction,
        "angles_left": found.angles_left,
        "angles_right": found.angles_right,
        "rank_energy": found.rank_energy,
        "rank1_rescaled": found.replacement,
        "path_sigma": line.sigma,
        "path_rank1_share": line.rank1_energy,
        "rank1_linearity": line.r_squared,
        "extrapolated_error": line.extrapolation_error,
    }
