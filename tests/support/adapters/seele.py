"""SEELE's vectors: curves of accuracy, and the loss with the first step of rows as their hint."""

import golden_vectors as golden
import jax.numpy as jnp
import numpy as np
from adapters.common import recipe_with

from rlvr_jax.methods.guidance.seele import Curve, hint_tokens
from rlvr_jax.objectives import GIVEN


def outputs(case, hyper):
    method = recipe_with(hyper, "seele")
    batch = golden.rollouts(case)
    origin = jnp.where(batch.records["step"] == 0, GIVEN, 0).astype(jnp.int32)
    batch = batch.replace(origin=origin)
    done = golden.evaluate(method, case, batch=batch)
    hint = batch.mask & hint_tokens(batch)
    group = np.arange(len(np.unique(batch.group)))
    curve = Curve(0.05 * group, 4.0 + 2 * group, -0.3 - 0.1 * group)
    at = curve.ratio(hyper["target"])
    return {
        **done.outputs(),
        "curve_params": np.stack(curve, axis=1),
        "curve": np.stack([curve(p) for p in np.linspace(0, 1, 11)], axis=1),
        "p_for_target": at,
        "p_clamped": np.clip(at, 0, 1),
        "advantages": np.where(hint, 0, done.signals.advantage),
        "hint_mask": hint,
    }
