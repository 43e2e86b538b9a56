"""Off the principals: four matrices, a small step from one policy's logits to another's."""

import golden_vectors as golden
import numpy as np

from rlvr_jax.analysis.weights.off_principal import off_principal


def outputs(case, hyper):
    data = golden.inputs(case)
    before = data["old_logits"][: hyper["rows"]]
    after = before + hyper["step"] * (data["logits"][: hyper["rows"]] - before)
    found = [
        off_principal(*pair, hyper["k"], hyper["alpha"], hyper["eta"])
        for pair in zip(before, after, strict=True)
    ]
    names = {
        "sparsity": "sparsity",
        "nss": "spectral_shift",
        "delta_rank": "update_rank",
        "angle_left": "angles_left",
        "angle_right": "angles_right",
        "overlap": "overlap",
        "overlap_chance": "chance",
        "mass_on_principal": "mass_on_principal",
        "mass_on_low": "mass_on_low",
        "principal_mask": "principal",
        "changed": "changed",
    }
    return {ours: np.array([getattr(one, name) for one in found]) for ours, name in names.items()}
